"""The parts of deploy/figures.py. First file to open: summaries.py, which describes what is kept."""
