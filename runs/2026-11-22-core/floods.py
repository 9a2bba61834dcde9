"""Floods a roost server while a stranger goes on with SET, kills it with SIGKILL and times the next start.

python3 floods.py BINARY setrange setbit expire expirekill buckets longkey orphans
"""
import os, re, shutil, socket, subprocess, sys, tempfile, threading, time
BIN=sys.argv[1]; which=sys.argv[2:] 
def enc(*a):
    out=b"*%d\r\n"%len(a)
    for w in a:
        w=w if isinstance(w,bytes) else str(w).encode()
        out+=b"$%d\r\n"%len(w)+w+b"\r\n"
    return out
def start(d, *more):
    t=time.time()
    p=subprocess.Popen([BIN,"serve","--open","--listen","127.0.0.1:0","--redis-listen","127.0.0.1:0","--data",d,*more],stdout=subprocess.PIPE,stderr=open(d+".err","a"))
    port=None
    while True:
        l=p.stdout.readline().decode()
        if not l: raise Exception("no start "+open(d+".err").read()[-2000:])
        m=re.match(r"roost serves redis://127.0.0.1:(\d+)",l)
        if m: port=int(m[1])
        if l.startswith("roost serves http"): break
    return p,port,time.time()-t
def conn(port):
    s=socket.create_connection(("127.0.0.1",port)); s.settimeout(120); return s
def hwm(p):
    return [l for l in open(f"/proc/{p.pid}/status") if l.startswith("VmHWM")][0].split()[1]
def recvlines(s,n,timeout=120):
    s.settimeout(timeout); buf=b""; c=0
    while c<n:
        b=s.recv(1<<20)
        if not b: break
        c+=b.count(b"\r\n"); buf=(buf+b)[-200:]
    return c,buf
def strangers(port, stop, lat):
    s=conn(port)
    while not stop[0]:
        t=time.time(); s.sendall(enc("SET","stranger","1")); s.recv(100); lat.append(time.time()-t)
def run(name, fn):
    d=os.path.join(tempfile.mkdtemp(),name)
    p,port,_=start(d)
    stop=[False]; lat=[]
    th=threading.Thread(target=strangers,args=(port,stop,lat)); th.start()
    t=time.time(); r=None
    try: r=fn(port)
    except Exception as e: r=repr(e)
    dt=time.time()-t; stop[0]=True; th.join()
    h=hwm(p) if p.poll() is None else "dead"
    lat.sort()
    l=f"strangers' SET p50 {lat[len(lat)//2]*1e3:.1f} ms p99 {lat[int(len(lat)*.99)]*1e3:.1f} max {lat[-1]*1e3:.0f} n={len(lat)}" if lat else "none"
    p.kill(); p.wait()
    p,port,st=start(d)
    s=conn(port); s.sendall(enc("DBSIZE")); db=s.recv(100)
    print(f"{name}: {dt:.1f}s result={r} peak={h}kB; {l}; restart {st:.2f}s dbsize={db}",flush=True)
    p.kill(); p.wait(); shutil.rmtree(os.path.dirname(d),ignore_errors=True)
def setrange(port):
    s=conn(port); n=200
    s.sendall(b"".join(enc("SETRANGE",f"k{i}",16777214,"x") for i in range(n))); return recvlines(s,n)
def setbit(port):
    s=conn(port); s.sendall(enc("SETRANGE","big",16777214,"x")); s.recv(100)
    n=2000; s.sendall(b"".join(enc("SETBIT","big",5,i&1) for i in range(n))); return recvlines(s,n)
def expire(port):
    s=conn(port); n=400000; 
    at=int((time.time()+12)*1000)
    for a in range(0,n,10000):
        s.sendall(b"".join(enc("SET",f"key{i}","v","PXAT",at) for i in range(a,a+10000))); recvlines(s,10000)
    while time.time()*1000<at: time.sleep(0.05)
    t=time.time()
    while True:
        s.sendall(enc("DBSIZE")); r=s.recv(100)
        if int(r[1:-2])<=1: return "swept in %.1fs"%(time.time()-t)
        if time.time()-t>100: return "not swept "+repr(r)
        time.sleep(0.1)
def expirekill(port): 
    s=conn(port); n=400000; at=int((time.time()+10)*1000)
    for a in range(0,n,10000):
        s.sendall(b"".join(enc("SET",f"key{i}","v","PXAT",at) for i in range(a,a+10000))); recvlines(s,10000)
    while time.time()*1000<at: time.sleep(0.05)
    return "killed at expiry"
def buckets(port):
    s=conn(port); n=60000
    for a in range(0,n,5000):
        s.sendall(b"".join(enc("BUCKET","CREATE",f"b{i}")+enc("BUCKET","DELETE",f"b{i}") for i in range(a,a+5000))); recvlines(s,10000)
    s.sendall(enc("BUCKET","CREATE","last")); return s.recv(100)
def longkey(port):
    s=conn(port); s.sendall(enc("SET","a","1")+enc("DEL",b"x"*70000)+enc("RENAME",b"x"*70000,"b")); return recvlines(s,3)
def orphans(port):
    s=conn(port)
    for a in range(0,400000,10000):
        s.sendall(b"".join(enc("SET",f"key{i}","v") for i in range(a,a+10000))); recvlines(s,10000)
    n=2000; s.sendall(enc("SELECT","1")+b"".join(enc("SET","a","1")+enc("FLUSHDB") for _ in range(n)))
    recvlines(s,2*n+1); time.sleep(2); return "flushed"
for w in which: run(w, globals()[w])
