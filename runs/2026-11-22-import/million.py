import random
N=1_000_000
out=open('million.ndjson','w',buffering=1<<20)
out.write('{"export":{"format":1}}\n')
for i in range(N): out.write('{"user":{"handle":"user%d"}}\n'%i)
offs=[sorted(random.sample(range(1,N),120)) for _ in range(64)]
for i in range(N):
    o=offs[i&63]
    out.write('{"follow":{"user":%d,"follows":[%s]}}\n'%(i,','.join([str((i+x)%N) for x in o])))
out.write('{"end":{}}\n'); out.close()
