"""Torch's tensors go into kernels and come out of them, without a copy."""

import sys

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error} for {sys.executable}; apt-get install python3-torch python3-numpy")
    sys.exit(77)

import tuner
from package import QUICK, WithFolder
import unit_tests  # noqa: E402


class Torch(WithFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kernel = tuner.tune("conv2d", data=(1, 8, 14, 14), weight=(8, 8, 3, 3), padding=1, db=cls.folder / "t.db", **QUICK)

    def test_a_convolution_is_that_of_torch(self):
        x, w = torch.randn(1, 8, 14, 14), torch.randn(8, 8, 3, 3)
        out = torch.empty(1, 8, 14, 14)
        address = out.data_ptr()
        self.assertIs(self.kernel(x, w, out=out), out)
        self.assertEqual(out.data_ptr(), address)
        torch.testing.assert_close(out, torch.nn.functional.conv2d(x, w, padding=1), rtol=1e-4, atol=1e-4)
        # The result of numpy's kind is torch's without a copy.
        new = self.kernel(x, w)
        self.assertEqual(torch.from_numpy(new).data_ptr(), new.ctypes.data)
        numpy.testing.assert_array_equal(new, out.numpy())

    def test_capsules_and_numpy_together(self):
        x, w = torch.randn(1, 8, 14, 14), tuner.zeros((8, 8, 3, 3))
        w[:, :, 1, 1] = numpy.eye(8)
        out = self.kernel(torch.utils.dlpack.to_dlpack(x), w)
        numpy.testing.assert_allclose(out, x.numpy(), rtol=1e-5, atol=1e-5)

    def test_what_does_not_fit(self):
        x, w = torch.randn(1, 8, 14, 14), torch.randn(8, 8, 3, 3)
        self.assertIn("found float64", self.message(tuner.DTypeError, lambda: self.kernel(x.double(), w)))
        self.assertIn("found (1, 8, 14, 13)", self.message(tuner.ShapeError, lambda: self.kernel(x[..., 1:].contiguous(), w)))
        self.assertIn("196, 1, 14) elements",
                      self.message(tuner.StridesError, lambda: self.kernel(x.transpose(2, 3), w)))
        shifted = torch.randn(1 * 8 * 14 * 14 + 1)[1:].reshape(1, 8, 14, 14)
        self.assertIn("one that is 4 more", self.message(tuner.AlignmentError, lambda: self.kernel(shifted, w)))
        gradient = torch.randn(1, 8, 14, 14, requires_grad=True)
        self.assertIn("gives no DLPack capsule", self.message(tuner.ArrayError, lambda: self.kernel(gradient, w)))


if __name__ == "__main__":
    unit_tests.main()
