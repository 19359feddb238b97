"""The tutorial: the notebook has the blocks of docs/python.md, and runs from top to bottom."""

import json
import re
import sys

from package import SOURCE, WithFolder
import unit_tests  # noqa: E402

try:
    import ipykernel  # noqa: F401
    import matplotlib  # noqa: F401
    import nbclient
    import nbformat
except ImportError as error:
    print(f"skipped: {error} for {sys.executable}; apt-get install python3-nbclient python3-ipykernel python3-matplotlib")
    sys.exit(77)

PAGE, NOTEBOOK = SOURCE / "docs/python.md", SOURCE / "examples/python/tutorial.ipynb"


class Tutorial(WithFolder):
    def test_the_page_and_the_notebook_have_the_same_code(self):
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        cells = ["".join(cell["source"]) + "\n" for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
        self.assertEqual(blocks, cells)

    def test_the_notebook_runs(self):
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(self.folder)}})
        client.execute()
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        text = ["".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream") for cell in code]
        self.assertIn("us per call, by conv2d", text[0])
        # Progress is one output that changes, not a line per trial.
        shown = [output for output in code[0].outputs if output.output_type == "display_data"]
        self.assertEqual(len(shown), 1)
        self.assertIn("conv2d: tuned: ", shown[0]["data"]["text/plain"])
        self.assertIn("(1, 64, 14, 14) float32", text[1])
        self.assertIn("[1. 1. 1. 1.]", text[3])
        self.assertIn("exact j", text[4])
        self.assertTrue(any("image/png" in output.get("data", {}) for output in code[5].outputs))
        self.assertIn("configs; ({", text[6])


if __name__ == "__main__":
    unit_tests.main()
