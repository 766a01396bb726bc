"""Programs that ask by POST, and statements: influx, lpstat, transmission."""

import json
import os
import time

from place import found, free_ports, scene, shown


@scene("influx", "influxd")
def influx(place):
    """A statement that influx reports as failed is never carried out later; points that it reports as written arrive."""
    http, rpc = free_ports(2)
    own = {
        "INFLUXDB_HTTP_BIND_ADDRESS": f"127.0.0.1:{http}",
        "INFLUXDB_BIND_ADDRESS": f"127.0.0.1:{rpc}",
        "INFLUXDB_META_DIR": place.directory + "/meta",
        "INFLUXDB_DATA_DIR": place.directory + "/data",
        "INFLUXDB_DATA_WAL_DIR": place.directory + "/wal",
        "INFLUXDB_REPORTING_DISABLED": "true",
        "INFLUXDB_MONITOR_STORE_ENABLED": "false",
        "HOME": place.directory,
    }
    place.write("empty.conf", "")
    command = [found("influxd"), "-config", place.directory + "/empty.conf"]
    place.start(*command, env={**os.environ, **own}, ready=f"http://127.0.0.1:{http}/ping")
    place.begin(http)

    def influx(statement, port=None):
        options = ["-host", "127.0.0.1", "-port", str(port or place.gateway), "-database", "tides", "-precision", "s"]
        return place.run(found("influx"), *options, "-execute", statement, within=30)

    def values():
        status, said = influx("SELECT * FROM level", http)
        return [line.split()[1] for line in said.splitlines() if line[:1].isdigit()]

    place.check(influx("CREATE DATABASE tides")[0] == 0, "online, a statement")
    place.check(influx("INSERT level value=1 1700000001")[0] == 0 and values() == ["1"], f"online, a point: {values()}")
    place.check("1700000001" in influx("SELECT * FROM level")[1], "online, a query")
    place.away()
    said = {text: influx(text)[0] for text in ("DROP DATABASE tides", "DELETE FROM level", "SELECT * FROM level", "SHOW DATABASES")}
    point = influx("INSERT level value=2 1700000002")
    print(f"  away: {said}, a point: {point[0]}")
    # influx begins with a ping; other programs send the statement at once.
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    for query in ("q=DROP+DATABASE+tides", "db=tides&q=delete%20from%20level", "q=SHOW+DATABASES", "q=SELECT+1"):
        for path, body in (("/query?" + query, ""), ("/query", query)):
            status = place.send("POST", place.url + path, body, **form)[0]
            place.check(status == 503, f"away, POST {path} {body} is answered {status}")
    write = place.send("POST", "/write?db=tides&precision=s", "level value=3 1700000003", Content_Type="text/plain; charset=utf-8")[0]
    kinds = [row["url"] for row in place.operations()]
    place.check(all("/write" in url for url in kinds), f"only points are queued: {shown(place.operations())}")
    place.back()
    place.online()
    place.settled()
    expected = ["1"] + ["2"] * (point[0] == 0) + ["3"] * (write in (202, 204))
    place.check(values() == expected, f"the database is there, with what was accepted: {values()}, not {expected}")


def printer(asked):
    """Plays a server of printers: a success, and one printer where one is asked for."""
    if asked.method != "POST" or len(asked.body) < 8:
        return 200, {"Content-Type": "text/html"}, "<html>printers</html>"

    def attribute(tag, name, value):
        return bytes([tag]) + len(name).to_bytes(2, "big") + name.encode() + len(value).to_bytes(2, "big") + value

    said = bytes([2, 0, 0, 0]) + asked.body[4:8]
    said += b"\x01" + attribute(0x47, "attributes-charset", b"utf-8") + attribute(0x48, "attributes-natural-language", b"en")
    said += b"\x04" + attribute(0x42, "printer-name", b"tides") + attribute(0x23, "printer-state", b"\0\0\0\x03")
    said += attribute(0x44, "printer-state-reasons", b"none") + attribute(0x22, "printer-is-accepting-jobs", b"\x01")
    return 200, {"Content-Type": "application/ipp"}, said + b"\x03"


@scene("lpstat", "lp")
def lpstat(place):
    """Questions to a printer and jobs are never queued; away they fail at once, and not forty thousand times."""
    place.begin(place.site(printer).port)
    place.write("paper", "low water")

    def run(program, *words):
        start = time.monotonic()
        status, said = place.run(found(program), "-h", f"127.0.0.1:{place.gateway}", *words, within=8)
        return status, said.strip()[:100], time.monotonic() - start

    status, said, _ = run("lpstat", "-p")
    place.check(status == 0 and "tides" in said, f"online, lpstat: {status} {said}")
    place.away()
    for program, *words in (("lpstat", "-p"), ("lpstat", "-t"), ("lpstat", "-o"), ("lp", "-d", "tides", "paper")):
        status, said, took = run(program, *words)
        print(f"  away: {program} {words[0]} ends with {status} after {took:.1f} s: {said}")
    place.check(place.operations() == [], f"away, nothing is queued: {len(place.operations())} or more")
    asked = place.call("GET", "/v1/requests?limit=500")["items"]
    place.check(len(asked) < 100, f"away, few requests: {len(asked)} or more")
    place.back()
    place.online()
    place.check(run("lpstat", "-p")[0] == 0, "back, lpstat")


@scene("transmission-daemon", "transmission-remote")
def transmission(place):
    """The handshake by 409 goes on after an outage; questions are no writes."""
    port, peers = free_ports(2)
    options = ["-f", "-T", "-g", place.directory + "/own", "-r", "127.0.0.1", "-p", str(port), "-P", str(peers), "-i", "127.0.0.1"]

    def daemon():
        line = [found("transmission-daemon"), *options, "-w", place.directory, "--no-dht", "--no-lpd", "--no-portmap"]
        return place.start(*line, ready=f"http://127.0.0.1:{port}/transmission/rpc")

    running = daemon()
    place.begin(port)

    def remote(*words):
        return place.run(found("transmission-remote"), f"127.0.0.1:{place.gateway}", *words, within=30)

    status, said = remote("-l")
    place.check(status == 0 and "Sum:" in said, f"online, the list: {status} {said[-200:]}")
    magnet = "magnet:?xt=urn:btih:" + "a" * 40
    place.away()
    for words in (["-l"], ["-si"], ["-a", magnet], ["-l"]):
        status, said = remote(*words)
        print(f"  away: {words[0]} ends with {status}: {said.strip()[:100]}")
    asked = [row for row in place.operations() if row["method"] == "POST"]
    place.check(len(asked) <= 1, f"away, questions are not queued: {len(asked)}")
    running.kill()
    running.wait()
    running = daemon()
    place.back()
    place.online()
    place.settled()
    for _ in range(2):
        status, said = remote("-l")
        place.check(status == 0 and "Sum:" in said, f"back, the list: {status} {said[-200:]}")
    status, said = remote("-a", "magnet:?xt=urn:btih:" + "b" * 40)
    place.check(status == 0 and "success" in said, f"back, a torrent is added: {status} {said[-200:]}")
    call = json.dumps({"method": "session-get"})
    status, fields, _ = place.send("POST", "/transmission/rpc", call, Content_Type="application/json")
    place.check(status == 409 and fields.get("X-Transmission-Session-Id"), f"back, the handshake: {status}")


SCENES = [influx, lpstat, transmission]
