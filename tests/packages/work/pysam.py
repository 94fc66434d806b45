# debian: python3-pysam
import os
import tempfile

import pysam

header = {"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": "c1", "LN": 1000}]}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.bam")
    with pysam.AlignmentFile(path, "wb", header=header) as out:
        for i in range(20):
            a = pysam.AlignedSegment(out.header)
            a.query_name, a.query_sequence, a.reference_id, a.reference_start = "r%d" % i, "ACGT", 0, 10 * i
            a.cigarstring, a.mapping_quality = "4M", 60
            out.write(a)
    with pysam.AlignmentFile(path, "rb") as back:
        reads = list(back)
    assert len(reads) == 20 and reads[3].reference_end == 34 and reads[3].get_tag
    packed = os.path.join(folder, "x.fa.gz")
    with pysam.BGZFile(packed, "wb") as out:
        out.write(b">s\nACGTACGT\n")
    with pysam.FastxFile(packed) as back:
        assert [r.sequence for r in back] == ["ACGTACGT"]
