"""Requests that are unusual but legal: each must be forwarded, and mean the same to the next recipient."""

METHODS = (
    "GET HEAD POST PUT PATCH DELETE OPTIONS PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK SEARCH REPORT MERGE CHECKOUT NOTIFY "
    "SUBSCRIBE UNSUBSCRIBE PURGE LINK UNLINK MKACTIVITY MKCALENDAR BIND REBIND UNBIND ACL SOURCE QUERY M-SEARCH"
).split()
TARGETS = {
    "empty query": "/a?",
    "two question marks": "/a??b?",
    "only a query": "/?q",
    "empty segments": "//a///b//",
    "dots": "/a/./b/../c",
    "dots encoded": "/a/%2e%2e/b",
    "slash encoded": "/a%2Fb%2f",
    "nul encoded": "/a%00b",
    "newline encoded": "/a%0d%0aX:%20y",
    "percent encoded": "/%2525",
    "broken percent": "/a%zz%",
    "tilde": "/~a",
    "sub-delims": "/!$&'()*+,;=:@",
    "semicolons": "/a;b=c;d/e;f?g;h",
    "equals": "/a?=&&=b&",
    "brackets": "/a?b[]=c",
    "utf-8 encoded": "/%C3%A9?%E2%82%AC",
    "latin-1 encoded": "/%E9",
    "colon": "/a:80/b",
    "address in path": "/http://other.test/x",
    "long path": "/{{a*4000}}",
    "long query": "/?{{b=c&*2000}}",
    "at": "/u:p@h/",
    "star": "/*",
    "plus": "/a+b?c+d",
    "space encoded": "/a%20b",
    "backslash encoded": "/a%5Cb",
    "quote encoded": "/%22%27%3C%3E",
    "case of hex": "/%aF%Af",
}
FIELDS = {
    "empty value": "X-A:",
    "empty values": "X-A:\r\nX-B: \r\nX-C:\t",
    "tabs": "X-A:\t a\tb \t",
    "token characters": "!#$%&'*+-.^_`|~09: a",
    "underscore": "X_A: b",
    "dot": "X.A: b",
    "digit": "1: 2",
    "upper": "X-UPPER: a",
    "lower": "accept-language: de",
    "colons": "X-A: :: a:b:",
    "quotes": 'X-A: "a, \\"b\\"" , c',
    "utf-8": "X-A: \xc3\xa9 \xe2\x82\xac",
    "twice": "X-A: 1\r\nX-A: 2\r\nx-a: 1",
    "long value": "X-A: {{a*7000}}",
    "long name": "X-{{a*200}}: b",
    "several cookies": "Cookie: a=1; b=2\r\nCookie: c=3",
    "odd cookie": 'Cookie: a="b;c"; =; d==',
    "authorization": "Authorization: Basic Og==",
    "range": "Range: bytes=0-0,-1",
    "accept none": "Accept:",
    "accept twice": "Accept: a/b\r\nAccept: c/d",
    "dates": "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
    "many tags": 'If-None-Match: W/"a", "b" , "c,d"',
    "max forwards": "Max-Forwards: 7",
    "te trailers": "TE: trailers\r\nConnection: TE",
    "te gzip": "TE: gzip;q=0.5\r\nConnection: te",
    "upgrade h2c": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
    "upgrade other": "Connection: upgrade\r\nUpgrade: x/1",
    "upgrade alone": "Upgrade: websocket",
    "listed": "Connection: X-A, close\r\nX-A: b\r\nX-B: c",
    "listed empty": "Connection: ,, keep-alive ,",
    "keep-alive": "Connection: keep-alive\r\nKeep-Alive: timeout=5",
    "proxy-connection": "Proxy-Connection: keep-alive",
    "via": "Via: 1.0 a, 1.1 b (c)",
    "forwarded": 'Forwarded: for="[::1]:80"\r\nX-Forwarded-For: a, b',
    "pragma": "Pragma: no-cache",
    "trailer": "Trailer: X-A",
    "identity": "Accept-Encoding: identity;q=0, *;q=0",
    "length zero": "Content-Length: 0",
    "type alone": "Content-Type: text/plain",
    "parens": "User-Agent: a (b (c)) d/\\1",
    "delete": "X-A: a}b{c|d",
    "percent": "X-A: %0d%0aX-B: c",
    "colon name": "X-A-: b\r\n-X: c",
}
BODIES = {
    "one byte": ("Content-Length: 1", "x"),
    "crlf": ("Content-Length: 4", "\r\n\r\n"),
    "a request": ("Content-Length: 29", "GET /inner HTTP/1.1\r\nA: b\r\n\r\n"),
    "leading zeros": ("Content-Length: 0005", "hello"),
    "chunk": ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
    "chunked in capitals": ("TRANSFER-ENCODING: CHUNKED", "5\r\nhello\r\n0\r\n\r\n"),
    "hex in both cases": ("Transfer-Encoding: chunked", "a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n"),
    "zeros before the size": ("Transfer-Encoding: chunked", "0005\r\nhello\r\n000\r\n\r\n"),
    "extension": ("Transfer-Encoding: chunked", "5;a=b;c\r\nhello\r\n0;d\r\n\r\n"),
    "quoted extension": ("Transfer-Encoding: chunked", '5;a="b;c"\r\nhello\r\n0\r\n\r\n'),
    "trailers": ("Transfer-Encoding: chunked\r\nTrailer: X-T", "5\r\nhello\r\n0\r\nX-T: t\r\n\r\n"),
    "a length as trailer": ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n"),
    "no chunk": ("Transfer-Encoding: chunked", "0\r\n\r\n"),
    "chunks like ends": ("Transfer-Encoding: chunked", "5\r\n0\r\n\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n"),
    "many chunks": ("Transfer-Encoding: chunked", "{{1\r\nx\r\n*300}}0\r\n\r\n"),
    "expected": ("Expect: 100-continue\r\nContent-Length: 5", "hello"),
    "expected in chunks": ("Expect: 100-Continue\r\nTransfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
    "large": ("Content-Length: 100000", "{{0123456789*10000}}"),
    "large in chunks": ("Transfer-Encoding: chunked", "{{a\r\n0123456789\r\n*10000}}0\r\n\r\n"),
    "encoded": ("Content-Encoding: gzip\r\nContent-Length: 3", "\x1f\x8b\b"),
    "all bytes": ("Content-Length: 256", "".join(map(chr, range(256)))),
}
WHOLE = {
    "HTTP/1.0": "GET {{T}}/old HTTP/1.0\r\n{{HOST}}\r\n",
    "HTTP/1.0 kept": "GET {{T}}/old HTTP/1.0\r\n{{HOST}}Connection: keep-alive\r\n\r\n",
    "HTTP/1.0 body": "POST {{T}}/old HTTP/1.0\r\n{{HOST}}Content-Length: 2\r\n\r\nhi",
    "host in capitals": "GET {{T}}/h HTTP/1.1\r\nHOST:{{ORIGIN}}\r\n\r\n",
    "host with spaces": "GET {{T}}/h HTTP/1.1\r\nHost: \t {{ORIGIN}} \t\r\n\r\n",
    "host last": "GET {{T}}/h HTTP/1.1\r\nA: b\r\n{{HOST}}\r\n",
    "absolute, gateway too": "GET http://{{ORIGIN}}/abs?q HTTP/1.1\r\n{{HOST}}\r\n",
    "absolute in capitals": "GET HTTP://{{ORIGIN}}/abs HTTP/1.1\r\n{{HOST}}\r\n",
    "absolute without path": "GET http://{{ORIGIN}} HTTP/1.1\r\n{{HOST}}\r\n",
    "absolute with query only": "GET http://{{ORIGIN}}?q HTTP/1.1\r\n{{HOST}}\r\n",
    "options of the server": "OPTIONS http://{{ORIGIN}} HTTP/1.1\r\n{{HOST}}\r\n",
    "empty lines first": "\r\n\r\nGET {{T}}/e HTTP/1.1\r\n{{HOST}}\r\n",
    "a hundred fields": "GET {{T}}/m HTTP/1.1\r\n{{HOST}}{{X-A: b\r\n*100}}\r\n",
    "three in one go": "POST {{T}}/p0 HTTP/1.1\r\n{{HOST}}Content-Length: 0\r\n\r\n"
    "POST {{T}}/p1 HTTP/1.1\r\n{{HOST}}Content-Length: 1\r\n\r\nx"
    "POST {{T}}/p2 HTTP/1.1\r\n{{HOST}}Content-Length: 2\r\n\r\nxx",
    "after chunks another": "POST {{T}}/c HTTP/1.1\r\n{{HOST}}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    "GET {{T}}/d HTTP/1.1\r\n{{HOST}}\r\n",
    "body of a GET": "GET {{T}}/g HTTP/1.1\r\n{{HOST}}Content-Length: 5\r\n\r\nhello",
    "body of a HEAD": "HEAD {{T}}/g HTTP/1.1\r\n{{HOST}}Content-Length: 1\r\n\r\nx",
    "chunks of a DELETE": "DELETE {{T}}/g HTTP/1.1\r\n{{HOST}}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
}
# Not legal: each is truncated or violates the rules only after a part of it has been sent upstream.
BROKEN = {
    "half a body": "POST {{T}}/x HTTP/1.1\r\n{{HOST}}Content-Length: 900000\r\n\r\n{{0123456789*60000}}{{SLEEP 300}}{{EOF}}",
    "half the chunks": "POST {{T}}/x HTTP/1.1\r\n{{HOST}}Transfer-Encoding: chunked\r\n\r\n"
    "{{a\r\n0123456789\r\n*60000}}{{SLEEP 300}}{{EOF}}",
    "chunks that end badly": "POST {{T}}/x HTTP/1.1\r\n{{HOST}}Transfer-Encoding: chunked\r\n\r\n"
    "{{a\r\n0123456789\r\n*60000}}{{SLEEP 300}}x\r\n",
    "chunks and a request": "PUT {{T}}/x HTTP/1.1\r\n{{HOST}}Transfer-Encoding: chunked\r\n\r\n{{a\r\n0123456789\r\n*60000}}{{SLEEP 300}}"
    "0\r\nX: y\n\nGET /SMUGGLED HTTP/1.1\r\nHost: x\r\n\r\n",
}


def cases():
    """name → template, in the notation of `Tests/raw-http`."""
    found = {}
    for method in METHODS:
        found[f"method {method}"] = f"{method} {{{{T}}}}/m HTTP/1.1\r\n{{{{HOST}}}}" + (
            "\r\n" if method in ("GET", "HEAD") else "Content-Length: 2\r\n\r\nhi"
        )
    for name, target in TARGETS.items():
        found[f"target, {name}"] = f"GET {{{{T}}}}{target} HTTP/1.1\r\n{{{{HOST}}}}\r\n"
    for name, fields in FIELDS.items():
        found[f"fields, {name}"] = f"GET {{{{T}}}}/f HTTP/1.1\r\n{{{{HOST}}}}{fields}\r\n\r\n"
    for name, (fields, body) in BODIES.items():
        found[f"body, {name}"] = f"POST {{{{T}}}}/b HTTP/1.1\r\n{{{{HOST}}}}{fields}\r\n\r\n{body}"
    return found | WHOLE
