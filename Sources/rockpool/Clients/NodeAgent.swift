// The agent that `rockpool run` preloads into Node versions that read no proxy variables (docs/reference/cli.md#env `rockpool env`).
import RockpoolCore

/// A CommonJS file for `NODE_OPTIONS=--require`, for Node 14 and newer.
enum NodeAgent {
    /// The option that preloads the file at `path`, as a part of `NODE_OPTIONS`.
    static func option(_ path: String) -> String { "--require=\"\(path.escaping(["\\": "\\\\", "\"": "\\\""]))\"" }

    /// The file's text. It does nothing in Node versions that read `NODE_USE_ENV_PROXY` for `http`, `https` and `fetch` (22.21, 24.5), or
    /// without a proxy in the environment.
    static let source = #"""
        'use strict';
        // Written by rockpool env. Sends http, https and fetch of Node before 22.21 and 24.5 through the proxy of the environment.
        (() => {
          const [major, minor] = process.versions.node.split('.').map(Number);
          if (major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21)) return;
          const env = process.env;
          const parsed = (text) => { try { return text ? new URL(text) : null; } catch { return null; } };
          const proxies = { 'http:': parsed(env.http_proxy || env.HTTP_PROXY), 'https:': parsed(env.https_proxy || env.HTTPS_PROXY) };
          if (!proxies['http:'] && !proxies['https:']) return;
          const http = require('http');
          const https = require('https');
          const net = require('net');
          const tls = require('tls');
          const direct = (env.no_proxy || env.NO_PROXY || '').toLowerCase().split(/[\s,]+/).filter(Boolean);

          const proxyFor = (scheme, host, port) => {
            const proxy = proxies[scheme];
            if (!proxy || !host) return null;
            const name = host.toLowerCase().replace(/^\[|\]$/g, '');
            if (name === proxy.hostname.replace(/^\[|\]$/g, '') && String(port) === portOf(proxy)) return null;
            const goesAround = direct.some((entry) => {
              if (entry === '*') return true;
              const [, rule, only] = /^(.*?)(?::(\d+))?$/.exec(entry);
              if (only && only !== String(port)) return false;
              const bare = rule.replace(/^\*?\./, '');
              return name === bare || name.endsWith('.' + bare);
            });
            return goesAround ? null : proxy;
          };
          const portOf = (url) => url.port || (url.protocol === 'https:' ? '443' : '80');
          const hostOf = (url) => url.hostname.replace(/^\[|\]$/g, '');
          // The name and the password in the proxy's URL, as a value of Proxy-Authorization.
          const proofOf = (proxy) => proxy.username
            ? 'Basic ' + Buffer.from(decodeURIComponent(proxy.username) + ':' + decodeURIComponent(proxy.password)).toString('base64') : '';
          const authority = (host, port) => (net.isIPv6(host) ? `[${host}]` : host) + ':' + port;

          // http: the absolute form of the target, on a connection to the proxy.
          const addRequest = http.Agent.prototype.addRequest;
          http.Agent.prototype.addRequest = function (request, options, ...rest) {
            // Agents that make their own sockets (agent-base) read the proxy variables themselves; npm's does.
            const isOwn = this.createSocket !== http.Agent.prototype.createSocket;
            const isSecure = this instanceof https.Agent || request.protocol === 'https:';
            if (!options || typeof options !== 'object' || isSecure || isOwn || options.socketPath || options.secureEndpoint) {
              return addRequest.call(this, request, options, ...rest);
            }
            const host = options.host || options.hostname || 'localhost';
            const port = options.port || 80;
            const proxy = proxyFor('http:', host, port);
            if (!proxy || request.path.startsWith('http:')) return addRequest.call(this, request, options, ...rest);
            const named = request.getHeader && request.getHeader('host');
            const base = 'http://' + (named || (String(port) === '80' ? authority(host, 80).replace(/:80$/, '') : authority(host, port)));
            const before = request.path;
            request.path = base + before;
            // Fields given as an array are written already.
            const proof = proofOf(proxy);
            if (request._header) {
              request._header = request._header.replace(` ${before} HTTP/`, () => ` ${request.path} HTTP/`);
              if (proof) request._header = request._header.replace('\r\n', () => `\r\nProxy-Authorization: ${proof}\r\n`);
            } else if (proof) request.setHeader('Proxy-Authorization', proof);
            const changed = { ...options, host: hostOf(proxy), hostname: hostOf(proxy), port: Number(portOf(proxy)) };
            return addRequest.call(this, request, changed, ...rest);
          };

          // https: a tunnel by CONNECT, then TLS to the server in it.
          const tunnel = (proxy, host, port, done) => {
            const socket = net.connect({ host: hostOf(proxy), port: Number(portOf(proxy)) });
            let head = '';
            const fail = (error) => { socket.destroy(); done(error); };
            const read = (bytes) => {
              head += bytes.toString('latin1');
              const end = head.indexOf('\r\n\r\n');
              if (end < 0) { if (head.length > 65536) fail(new Error('the proxy answered CONNECT with too long a head')); return; }
              socket.removeListener('data', read);
              socket.removeListener('error', fail);
              socket.removeListener('close', ended);
              const status = /^HTTP\/1\.[01] (\d{3})/.exec(head);
              if (!status || status[1][0] !== '2') return fail(new Error('the proxy answered CONNECT with ' + head.split('\r\n', 1)[0]));
              socket.pause();
              const rest = Buffer.from(head.slice(end + 4), 'latin1');
              if (rest.length) socket.unshift(rest);
              done(null, socket);
            };
            const ended = () => fail(new Error('the proxy closed the connection'));
            socket.on('data', read).once('error', fail).once('close', ended);
            const target = authority(host, port);
            const proof = proofOf(proxy);
            socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${proof && `Proxy-Authorization: ${proof}\r\n`}\r\n`);
          };
          const secure = (options, socket, host) => tls.connect({
            ...options, socket, host: undefined, port: undefined, path: undefined,
            servername: options.servername || (net.isIP(host) ? '' : host),
          });
          const createConnection = https.Agent.prototype.createConnection;
          https.Agent.prototype.createConnection = function (...input) {
            const callback = typeof input[input.length - 1] === 'function' ? input[input.length - 1] : null;
            const options = input.find((one) => one && typeof one === 'object') || {};
            const host = options.host || options.hostname || 'localhost';
            const port = options.port || 443;
            const proxy = options.socketPath || options.socket ? null : proxyFor('https:', host, port);
            if (!proxy || !callback) return createConnection.apply(this, input);
            tunnel(proxy, host, port, (error, socket) => (error ? callback(error) : callback(null, secure(options, socket, host))));
          };

          // fetch: its own connections, by the dispatcher that Node has built in.
          if (typeof globalThis.fetch !== 'function') return;
          const key = Symbol.for('undici.globalDispatcher.1');
          const original = globalThis.fetch;
          let isInstalled = false;
          const install = () => {
            isInstalled = true;
            void new globalThis.Headers();
            const usual = globalThis[key];
            if (!usual || usual.constructor.name !== 'Agent') return;
            const secured = new usual.constructor({
              connect: (options, done) => {
                const host = (options.hostname || '').replace(/^\[|\]$/g, '');
                const port = options.port || 443;
                tunnel(proxies['https:'], host, port, (error, socket) => {
                  if (error) return done(error, null);
                  const over = secure({ servername: options.servername, ALPNProtocols: ['http/1.1'] }, socket, host);
                  over.once('secureConnect', () => { over.removeListener('error', done); done(null, over); }).once('error', done);
                });
              },
            });
            const withHost = (headers, host, proof) => {
              if (Array.isArray(headers)) return [...headers, 'host', host, ...(proof ? ['proxy-authorization', proof] : [])];
              const plain = headers && typeof headers[Symbol.iterator] === 'function' ? Object.fromEntries(headers) : headers;
              return proof ? { ...plain, host, 'proxy-authorization': proof } : { ...plain, host };
            };
            globalThis[key] = {
              dispatch(options, handler) {
                const origin = new URL(String(options.origin));
                const proxy = proxyFor(origin.protocol, hostOf(origin), portOf(origin));
                if (!proxy) return usual.dispatch(options, handler);
                if (origin.protocol === 'https:') return secured.dispatch(options, handler);
                const headers = withHost(options.headers, origin.host, proofOf(proxy));
                return usual.dispatch({ ...options, headers, origin: proxy.origin, path: origin.origin + options.path }, handler);
              },
              close: (...all) => usual.close(...all),
              destroy: (...all) => usual.destroy(...all),
            };
          };
          globalThis.fetch = function fetch(...all) {
            if (!isInstalled) install();
            return original.apply(this, all);
          };
        })();

        """#
}
