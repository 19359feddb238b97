"""What the pages show, as a list: which sets, which statistic, which machine. Nothing here is a figure.

A page has `<!-- figures: NAME -->` and `<!-- end -->`; deploy/figures.py puts the table NAME between them. A
new table is one entry of TABLES, a new row one Row. newest.py says which results they take."""

from dataclasses import dataclass

# What a machine is called in a table, in the order of the table of losses.
MACHINES = {"zen5": "Zen 5", "zen4": "Zen 4", "zen3": "Zen 3", "intel-amx": "Xeon", "h200": "H200"}

# A speed below this is a loss.
LOSS_BELOW = 1.0


@dataclass(frozen=True)
class Row:
    """Shapes of one line: those of the sets, or of some of their groups, or some of them by name."""

    label: str
    sets: tuple  # () in a part of "beside" that has no such shapes: its cells are "-"
    groups: tuple = ()
    names: tuple = ()
    direct: bool = False  # direct algorithms on both sides, instead of any algorithm
    limit: str = ""  # "share_of_peak" or "share_of_bandwidth": the column `limit`
    machine: str = ""  # another one than the table's
    threads: int = 0
    model: str = ""  # a whole model against ONNX Runtime, instead of shapes


@dataclass(frozen=True)
class Table:
    """One region of a page."""

    name: str
    kind: str  # how it is drawn: a function of drawing.py
    head: str = ""  # of the first column
    columns: tuple = ()  # of "speeds" and "beside": the keys of HEADS in drawing.py
    rows: tuple = ()
    beside: tuple = ()  # of "beside": heads of the parts; `rows` has those of each part in turn
    machine: str = ""
    threads: int = 1
    commands: bool = True  # list below the table how each of its runs was made
    libraries: bool = True  # the list names the libraries, too


PEAK, BANDWIDTH = "share_of_peak", "share_of_bandwidth"
SPEEDS = ("shapes", "mean", "worst", "limit")
BESIDE = ("mean", "worst", "limit")
CUBES = ("64^3", "128^3", "256^3", "512^3", "1024^3", "2048^3")


def _convolutions(set_name: str, kind: str, machine: str, threads: int = 1) -> tuple:
    """The rows of one set of ResNet-50's convolutions. Its groups end with `kind`: "NCHW", "blocked int8"."""

    def part(label: str, group: str, direct: bool = False) -> Row:
        group = f"conv {group} {kind}"
        return Row(label, (set_name,), (group,), direct=direct, machine=machine, threads=threads)

    direct = "3x3, stride 1, both without Winograd"
    return (
        part("1x1, stride 1", "1x1 s1"),
        part("1x1, stride 2", "1x1 s2"),
        part("3x3, stride 1", "3x3 s1"),
        # integers have direct algorithms only
        Row(direct, ()) if "int8" in kind else part(direct, "3x3 s1", direct=True),
        part("3x3, stride 2", "3x3 s2"),
        part("7x7, stride 2", "7x7 s2"),
    )


def _products(dtype: str, suffix: str, machine: str) -> tuple:
    """The rows of products of one small type."""
    cubes, bert = f"cubes_{suffix}", f"bert_{suffix}"

    def part(label: str, set_name: str, **of) -> Row:
        return Row(f"{dtype}, {label}", (set_name,), limit=PEAK, machine=machine, **of)

    return (
        part("64 and 128 cubed", cubes, names=CUBES[:2]),
        part("256 to 2048 cubed", cubes, names=CUBES[2:]),
        part("BERT's projections and feed-forward", bert, groups=(f"matmul large {dtype}",)),
        part("BERT's attention (12 heads)", bert, groups=(f"matmul batched {dtype}",)),
    )


PRODUCTS = Table(
    "zen5-products",
    "speeds",
    "matmul (set)",
    SPEEDS,
    machine="zen5",
    rows=(
        Row("64 and 128 cubed (`cubes`)", ("cubes",), names=CUBES[:2], limit=PEAK),
        Row(
            "256 to 2048 cubed, BERT (`cubes`, `bert`)",
            ("cubes", "bert"),
            ("matmul large", "matmul batched"),
            limit=PEAK,
        ),
        Row("1 and 8 rows (`skinny`)", ("skinny",), ("matmul skinny",), limit=BANDWIDTH),
        Row("64 rows (`skinny`)", ("skinny",), ("matmul few rows",), limit=PEAK),
        Row("49 and 197 rows, odd sizes (`skinny`)", ("skinny",), ("matmul ragged",), limit=PEAK),
    ),
)

SMALL_WORK = Table(
    "zen5-small-work",
    "speeds",
    "kernels (set)",
    SPEEDS,
    machine="zen5",
    rows=(
        Row("1x1 convolutions, NCHW (`mobilenetv2_1x1`)", ("mobilenetv2_1x1",), limit=PEAK),
        Row("depthwise 3x3, NCHW (`mobilenetv2_dw`)", ("mobilenetv2_dw",), limit=BANDWIDTH),
        Row(
            "depthwise 3x3, blocked (`mobilenetv2_dw_blocked`)", ("mobilenetv2_dw_blocked",), limit=BANDWIDTH
        ),
        Row("softmax (`rows`)", ("rows",), ("rows softmax",), limit=BANDWIDTH),
        Row("layer norm (`rows`)", ("rows",), ("rows layer_norm",), limit=BANDWIDTH),
        Row("mean (`rows`)", ("rows",), ("rows mean",), limit=BANDWIDTH),
        Row("transpose (`rows`)", ("rows",), ("rows transpose",), limit=BANDWIDTH),
        Row(
            "bias + ReLU, residual + ReLU (`rows`)",
            ("rows",),
            ("rows bias_relu", "rows add_relu"),
            limit=BANDWIDTH,
        ),
        Row("pooling, NCHW (`pooling`)", ("pooling",), ("pooling NCHW",), limit=BANDWIDTH),
        Row("pooling, blocked (`pooling`)", ("pooling",), ("pooling blocked",), limit=BANDWIDTH),
    ),
)

IMAGES = Table(
    "zen4-images",
    "speeds",
    "kernels (set)",
    SPEEDS,
    machine="zen4",
    rows=(
        Row("depthwise 5x5 to 11x11, NCHW (`depthwise_large`)", ("depthwise_large",), limit=PEAK),
        Row("depthwise 5x5 to 11x11, NHWC (`depthwise_large_nhwc`)", ("depthwise_large_nhwc",), limit=PEAK),
        Row(
            "depthwise 3x3 and 5x5, NHWC (`nhwc`)",
            ("nhwc",),
            ("depthwise 3x3 s1 NHWC", "depthwise 3x3 s2 NHWC", "depthwise 5x5 s1 NHWC", "depthwise 5x5 s2 NHWC"),
            limit=PEAK,
        ),
        Row("1x1, NHWC (`nhwc`)", ("nhwc",), ("conv 1x1 s1 NHWC", "conv 1x1 s2 NHWC"), limit=PEAK),
        Row("3x3, stride 1, NHWC (`nhwc`)", ("nhwc",), ("conv 3x3 s1 NHWC",)),
        Row("3x3, stride 1, both without Winograd", ("nhwc",), ("conv 3x3 s1 NHWC",), direct=True),
        Row("3x3, stride 2, NHWC (`nhwc`)", ("nhwc",), ("conv 3x3 s2 NHWC",), limit=PEAK),
        Row("pooling, NHWC (`nhwc`)", ("nhwc",), ("pooling NHWC",), limit=BANDWIDTH),
    ),
)

AVX2_IMAGES = Table(
    "zen3-images",
    "speeds",
    "kernels (set)",
    SPEEDS,
    machine="zen3",
    rows=(
        Row("1x1, NCHW (`resnet50`)", ("resnet50",), ("conv 1x1 s1 NCHW", "conv 1x1 s2 NCHW"), limit=PEAK),
        Row("3x3, stride 1, NCHW (`resnet50`)", ("resnet50",), ("conv 3x3 s1 NCHW",)),
        Row("3x3, stride 1, both without Winograd", ("resnet50",), ("conv 3x3 s1 NCHW",), direct=True),
        Row(
            "3x3 and 7x7, stride 2, NCHW (`resnet50`)",
            ("resnet50",),
            ("conv 3x3 s2 NCHW", "conv 7x7 s2 NCHW"),
            limit=PEAK,
        ),
        Row("1x1, NCHW (`mobilenetv2_1x1`)", ("mobilenetv2_1x1",), limit=PEAK),
        Row("depthwise 3x3, NCHW (`mobilenetv2_dw`)", ("mobilenetv2_dw",), limit=BANDWIDTH),
        *IMAGES.rows,
    ),
)

SCALED = "int8 scaled into uint8"

SMALL_TYPES = Table(
    "small-types",
    "beside",
    "matmul",
    BESIDE,
    beside=("Zen 5", "Xeon"),
    rows=(
        *_products("bfloat16", "bf16", "zen5"),
        *_products("int8", "int8", "zen5"),
        Row(SCALED, ("cubes_uint8", "bert_uint8"), limit=PEAK, machine="zen5"),
        *_products("bfloat16", "bf16", "intel-amx"),
        *_products("int8", "int8", "intel-amx"),
        Row(SCALED, ()),
    ),
)

TWO_THREADS = Table(
    "zen5-two-threads",
    "speeds",
    "set",
    ("shapes", "mean", "worst", "scaling", "limit"),
    machine="zen5",
    threads=2,
    rows=(
        Row("`bert`: projections and feed-forward", ("bert",), ("matmul large",), limit=PEAK),
        Row("`bert`: attention (12 heads)", ("bert",), ("matmul batched",), limit=PEAK),
        Row("`resnet50_blocked`", ("resnet50_blocked",), limit=PEAK),
    ),
)

NETWORKS = Table(
    "networks",
    "networks",
    "set",
    rows=(
        Row("`resnet50`", ("resnet50",), limit=PEAK, machine="zen5"),
        Row("`resnet50_blocked`", ("resnet50_blocked",), limit=PEAK, machine="zen5"),
        Row("`resnet50_blocked`", ("resnet50_blocked",), limit=PEAK, machine="zen5", threads=2),
        Row("`resnet50_int8`", ("resnet50_int8",), limit=PEAK, machine="zen5"),
        Row("`resnet50_blocked_int8`", ("resnet50_blocked_int8",), limit=PEAK, machine="zen5"),
        Row("`resnet50_blocked_int8`", ("resnet50_blocked_int8",), limit=PEAK, machine="intel-amx"),
        Row("`resnet50_nhwc_int8`", ("resnet50_nhwc_int8",), limit=PEAK, machine="intel-amx"),
    ),
)

CONVOLUTIONS = Table(
    "convolutions",
    "beside",
    "convolutions",
    ("both",),
    commands=False,
    beside=(
        "`resnet50`",
        "`resnet50_blocked`",
        "the same, 2 threads",
        "`resnet50_int8`",
        "`resnet50_blocked_int8`",
        "the same, Xeon",
        "Xeon, NHWC",
    ),
    rows=(
        *_convolutions("resnet50", "NCHW", "zen5"),
        *_convolutions("resnet50_blocked", "blocked", "zen5"),
        *_convolutions("resnet50_blocked", "blocked", "zen5", threads=2),
        *_convolutions("resnet50_int8", "NCHW int8", "zen5"),
        *_convolutions("resnet50_blocked_int8", "blocked int8", "zen5"),
        *_convolutions("resnet50_blocked_int8", "blocked int8", "intel-amx"),
        *_convolutions("resnet50_nhwc_int8", "NHWC int8", "intel-amx"),
    ),
)

GPU = Table(
    "gpu",
    "speeds",
    "kernels",
    ("against", "shapes", "mean", "worst", "limit"),
    machine="h200",
    libraries=False,
    rows=(
        Row("matmul of float32, direct sums", ("products_f32",), limit=PEAK),
        Row("- as three products of TF32 (`tf32x3`)", ("products_tf32x3",), limit=PEAK),
        Row("matmul of 16 bits by `wgmma`", ("products_16bit_wgmma",), limit=PEAK),
        Row(
            "- by `mma.sync` (GPUs from sm_80 on)",
            ("products_16bit_mma",),
            names=("4096x4096x4096 bfloat16", "4096x4096x4096 float16", "8192x8192x8192 bfloat16"),
            limit=PEAK,
        ),
        Row("ResNet-50's convolutions, float32, NCHW, batch 1", ("resnet50_f32",), limit=PEAK),
        Row(
            "softmax, layer norm, mean, sum, transpose, elementwise",
            ("memory_bound", "softmax", "layer_norm"),
            limit=PEAK,
        ),
    ),
)

README = Table(
    "readme",
    "speeds",
    "kernels",
    ("machine", "against", "shapes", "mean", "worst", "measured"),
    commands=False,
    rows=(
        Row("matmul, float32", ("cubes", "bert"), machine="zen5"),
        Row("ResNet-50's convolutions, float32", ("resnet50",), machine="zen5"),
        Row("- channels in blocks", ("resnet50_blocked",), machine="zen5"),
        Row("ResNet-50 as a whole", (), machine="zen5", model="resnet50"),
        Row(
            "matmul, bfloat16 and int8",
            ("cubes_bf16", "bert_bf16", "cubes_int8", "bert_int8"),
            machine="intel-amx",
        ),
        Row("ResNet-50's convolutions, int8, in blocks", ("resnet50_blocked_int8",), machine="intel-amx"),
        Row("- int8, NHWC", ("resnet50_nhwc_int8",), machine="intel-amx"),
        Row("matmul, float32", ("products_f32",), machine="h200"),
        Row("matmul, 16 bits", ("products_16bit_wgmma",), machine="h200"),
    ),
)

TABLES = (
    README,
    PRODUCTS,
    SMALL_WORK,
    IMAGES,
    AVX2_IMAGES,
    SMALL_TYPES,
    TWO_THREADS,
    NETWORKS,
    CONVOLUTIONS,
    GPU,
    Table("models", "models", "model"),
    Table("losses", "losses", "set"),
    Table("every-loss", "every loss", "set"),
    Table("runs", "runs"),
    Table("build", "build"),
)

# Sets, or shapes ("set/name"), that have figures and are in no table, each with the reason.
NOT_SHOWN = {
    "resnet50_bf16_nhwc": "15 of 46 algorithms that cuDNN's older interface chose never used a tensor core",
    "conv_16bit": "the same peer",
    "first_visit": "float16 was measured again (products_16bit_mma); of int8 cuBLASLt had no answer",
    "conv2d_512_512_7": "one layer of resnet50_f32, from another search",
}
