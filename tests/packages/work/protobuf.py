# debian: python3-protobuf
# pypi: protobuf
from google.protobuf import descriptor_pb2, struct_pb2, text_format

s = struct_pb2.Struct()
s.update({"a": 1, "b": [True, "x"], "c": {"d": None}})
again = struct_pb2.Struct.FromString(s.SerializeToString())
assert again == s and again["b"][1] == "x" and again["a"] == 1
d = descriptor_pb2.FileDescriptorProto(name="f")
d.message_type.add(name="M").field.add(name="n", number=4)
assert text_format.Parse(text_format.MessageToString(d), descriptor_pb2.FileDescriptorProto()) == d
