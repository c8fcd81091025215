#!/usr/bin/python3
"""Uses of Python that a sandbox likes to break."""
import asyncio, concurrent.futures, json, mmap, os, shutil, socket, sqlite3, ssl, subprocess, sys, tempfile, threading, zipfile

report = {}


def tried(name, act):
    try:
        report[name] = act()
    except Exception as e:
        report[name] = type(e).__name__


def copied():
    with open("a.txt", "w") as f:
        f.write("abc")
    os.chmod("a.txt", 0o640)
    os.utime("a.txt", (1, 2))
    shutil.copy2("a.txt", "b.txt")
    found = os.stat("b.txt")
    return [oct(found.st_mode & 0o777), found.st_mtime]


async def gathered():
    server_side, client_side = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=client_side)
    server_side.sendall(b"ping\n")
    line = await reader.readline()
    writer.close()
    process = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = await process.communicate(b"pong")
    return [line.decode().strip(), out.decode(), *await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(lambda: 2))]


def mapped():
    with tempfile.TemporaryFile() as f:
        f.write(b"x" * 4096)
        f.flush()
        with mmap.mmap(f.fileno(), 0) as m:
            m[0:3] = b"abc"
            return m[0:4].decode()


def archived():
    with zipfile.ZipFile("z.zip", "w") as z:
        z.writestr("a.txt", "abc")
    return zipfile.ZipFile("z.zip").namelist()


def forked():
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(w, b"child")
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(r, 9).decode()


def reached():
    with socket.create_connection(("127.0.0.1", 9), timeout=2):
        return "reached"


def locked():
    import multiprocessing
    multiprocessing.Lock()
    return "made"


tried("copy2", copied)
tried("asyncio", lambda: asyncio.run(gathered()))
tried("self", lambda: subprocess.run([sys.executable, "-c", "print(6*7)"], capture_output=True, text=True, check=True).stdout.strip())
tried("ssl", lambda: ssl.create_default_context().verify_mode.name)
tried("authorities", lambda: len(ssl.create_default_context().get_ca_certs()) > 0 or os.path.isdir(ssl.get_default_verify_paths().capath))
tried("sqlite", lambda: sqlite3.connect("t.db").execute("select 41 + 1").fetchone()[0])
tried("mmap", mapped)
tried("zip", archived)
tried("fork", forked)
tried("threads", lambda: sorted(concurrent.futures.ThreadPoolExecutor(4).map(lambda n: n * n, range(4))))
tried("home", lambda: os.path.expanduser("~") == os.environ["HOME"])
tried("network", reached)
tried("semaphore", locked)
for name in ("a.txt", "b.txt", "t.db", "z.zip"):
    os.remove(name)
json.dump(report, sys.stdout)
