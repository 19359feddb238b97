"""Arrays that kernels take: row-major, on a 64-byte border."""

from typing import Any, Sequence, Union

from . import _kernels


def empty(shape: Union[int, Sequence[int]], dtype: Any = "float32") -> Any:
    """Like numpy.empty(), with memory on a 64-byte border, which every operand of a kernel needs."""
    return _kernels.empty(shape, dtype)


def zeros(shape: Union[int, Sequence[int]], dtype: Any = "float32") -> Any:
    """Like numpy.zeros(), with memory on a 64-byte border."""
    array = empty(shape, dtype)
    array.fill(0)
    return array


def aligned(array: Any, dtype: Any = None) -> Any:
    """The array itself if a kernel takes it as it is, else a row-major copy on a 64-byte border."""
    import numpy
    given = numpy.asarray(array)
    wanted = numpy.dtype(dtype) if dtype is not None else given.dtype
    if given.dtype == wanted and given.dtype.isnative and given.flags.c_contiguous and given.ctypes.data % 64 == 0:
        return given
    copy = empty(given.shape, wanted.newbyteorder("="))
    copy[...] = given
    return copy
