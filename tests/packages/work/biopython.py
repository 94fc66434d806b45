# debian: python3-biopython
import numpy as np
from Bio import Align, Cluster
from Bio.Seq import Seq

assert str(Seq("ATGGCC").translate()) == "MA" and str(Seq("ATGC").reverse_complement()) == "GCAT"
aligner = Align.PairwiseAligner(match_score=2, mismatch_score=-1, open_gap_score=-2, extend_gap_score=-1)
assert aligner.score("GATTACA", "GATACA") == 10
ids, _, _ = Cluster.kcluster(np.array([[0.0], [0.1], [9.0], [9.1]]), 2, npass=5)
assert ids[0] == ids[1] != ids[2] == ids[3]
