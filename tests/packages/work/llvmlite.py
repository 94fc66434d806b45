# debian: python3-llvmlite
import ctypes

import llvmlite.binding as llvm
from llvmlite import ir

llvm.initialize()
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
module = ir.Module()
word = ir.IntType(64)
function = ir.Function(module, ir.FunctionType(word, [word, word]), "madd")
builder = ir.IRBuilder(function.append_basic_block())
a, b = function.args
builder.ret(builder.add(builder.mul(a, b), a))
target = llvm.Target.from_default_triple().create_target_machine()
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), target)
engine.finalize_object()
call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("madd"))
assert call(6, 7) == 48
