#!/usr/bin/env python3
"""make_model.py FILE: writes a small image classifier as an ONNX model (0.4 MB). It needs nothing but Python.

It stands in for the export of a framework, such as torch.onnx.export(). The weights are random numbers from a
fixed seed, so the scores mean nothing. The layers have the shapes of a real network:

    image float32[1, 3, 64, 64]
    Conv 3x3 to 32 channels, Relu
    Conv 3x3 to 64 channels with stride 2, Relu
    Conv 3x3 to 128 channels with stride 2, Relu
    GlobalAveragePool, Flatten, Gemm, Softmax
    scores float32[1, 10]
"""

import random
import struct
import sys

FLOAT, INT, INTS = 1, 2, 7  # AttributeProto.type; FLOAT is also TensorProto.data_type


def number(field: int, value: int) -> bytes:
    """A protobuf field that holds an integer >= 0: its key, then its value, 7 bits per byte."""
    out = bytearray()
    for left in (field << 3, value):
        while left > 127:
            out.append(left & 127 | 128)
            left >>= 7
        out.append(left)
    return bytes(out)


def data(field: int, value) -> bytes:
    """A protobuf field that holds bytes: text, or a message."""
    value = value.encode() if isinstance(value, str) else value
    key_and_size = number(field, len(value))
    return bytes([key_and_size[0] | 2]) + key_and_size[1:] + value


def tensor_type(name: str, shape: tuple) -> bytes:
    """ValueInfoProto of a float32 tensor."""
    dims = b"".join(data(1, number(1, extent)) for extent in shape)
    return data(1, name) + data(2, data(1, number(1, FLOAT) + data(2, dims)))


def node(operator: str, inputs: list, output: str, **attributes) -> bytes:
    """NodeProto. An attribute is an integer or a list of integers."""
    out = b"".join(data(1, name) for name in inputs) + data(2, output) + data(3, output) + data(4, operator)
    for name, value in attributes.items():
        if isinstance(value, int):
            body = number(3, value) + number(20, INT)
        else:
            body = b"".join(number(8, one) for one in value) + number(20, INTS)
        out += data(5, data(1, name) + body)
    return out


def weights(name: str, shape: tuple, draw: random.Random) -> bytes:
    """TensorProto of float32 numbers that keep the size of what flows through a layer."""
    count, inputs = 1, 1
    for extent in shape:
        count *= extent
    for extent in shape[1:]:
        inputs *= extent
    scale = (2 / inputs) ** 0.5
    raw = struct.pack(f"<{count}f", *(draw.gauss(0, scale) for _ in range(count)))
    return b"".join(number(1, extent) for extent in shape) + number(2, FLOAT) + data(8, name) + data(9, raw)


def model() -> bytes:
    """ModelProto: IR version 8, operator set 17."""
    draw = random.Random(1)
    nodes, constants = [], []
    value, channels = "image", 3
    for i, (out, stride) in enumerate(((32, 1), (64, 2), (128, 2)), 1):
        constants += [weights(f"w{i}", (out, channels, 3, 3), draw), weights(f"b{i}", (out,), draw)]
        nodes.append(node("Conv", [value, f"w{i}", f"b{i}"], f"conv{i}", strides=[stride] * 2, pads=[1] * 4))
        nodes.append(node("Relu", [f"conv{i}"], f"relu{i}"))
        value, channels = f"relu{i}", out
    constants += [weights("w4", (10, channels), draw), weights("b4", (10,), draw)]
    nodes.append(node("GlobalAveragePool", [value], "average"))
    nodes.append(node("Flatten", ["average"], "flat", axis=1))
    nodes.append(node("Gemm", ["flat", "w4", "b4"], "logits", transB=1))
    nodes.append(node("Softmax", ["logits"], "scores", axis=1))
    graph = b"".join(data(1, one) for one in nodes) + data(2, "classifier")
    graph += b"".join(data(5, one) for one in constants)
    graph += data(11, tensor_type("image", (1, 3, 64, 64))) + data(12, tensor_type("scores", (1, 10)))
    return number(1, 8) + data(2, "make_model.py") + data(7, graph) + data(8, number(2, 17))


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], "wb") as file:
        file.write(model())
    return 0


if __name__ == "__main__":
    sys.exit(main())
