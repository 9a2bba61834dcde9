"""Answers queries with FAISS and prints how long it took, for `bench recognise`.

Arguments: a file of references and one of queries, 128 bytes each, and K. Each line of input names a
way; the answer is a line with the seconds that all queries took and the sum of all distances.
"""

import sys
import time

import faiss
import numpy

references, queries = (
    numpy.fromfile(file, dtype=numpy.uint8).reshape(-1, 128) for file in sys.argv[1:3]
)
k = int(sys.argv[3])
index = faiss.IndexBinaryFlat(1024)
index.add(references)


def one_by_one():
    return sum(int(index.search(query, k)[0].sum()) for query in queries[:, None])


def together():
    return int(index.search(queries, k)[0].sum())


WAYS = {"single": (1, one_by_one), "list": (1, together), "threads": (2, together)}

print(faiss.__version__, faiss.get_compile_options().strip(), flush=True)
for line in sys.stdin:
    threads, answer = WAYS[line.strip()]
    faiss.omp_set_num_threads(threads)
    start = time.perf_counter()
    distances = answer()
    print(time.perf_counter() - start, distances, flush=True)
