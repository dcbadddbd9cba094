"""The module holdfast._native: the C interface, as <holdfast/holdfast.h> declares it."""
import pathlib
import re

from cffi import FFI

INCLUDE = pathlib.Path(__file__).resolve().parents[1] / "include"


def declarations():
    """What cffi understands of the headers: no comments, no directives."""
    text = "".join((INCLUDE / "holdfast" / name).read_text() for name in ("holdfast.h", "operators.h", "tokens.h"))
    numbers = dict(re.findall(r"^#define (HF_\w+) (\d+)$", text, re.M))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    for name, number in numbers.items():
        text = re.sub(rf"\b{name}\b", number, text)
    return text


# Free what a call has put into its cell. In C: a signal handler cannot raise in the middle.
CELLS = "".join(f"static void free_{each}_in(hf_{each}** cell) {{ hf_{each}_free(*cell); }}\n" for each in ("call", "lease"))

ffi = FFI()
ffi.cdef(declarations() + re.sub("{.*}", ";", CELLS).replace("static ", ""))
ffi.set_source("holdfast._native", "#include <holdfast/holdfast.h>\n" + CELLS, include_dirs=[str(INCLUDE)],
               libraries=["holdfast_c"], extra_link_args=["-Wl,-rpath,$ORIGIN"], py_limited_api=True)
