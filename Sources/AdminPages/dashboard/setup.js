// How a client is pointed at this proxy: lines to copy, for each kind of client.
import { h } from "./dom.js";
import { get } from "./api.js";

export const setup = {
  topics: [],
  title: () => "Set up a client",
  async load() {
    const [status, pac, certificate] = await Promise.all([get("/v1/status"), there("/proxy.pac"), there("/ca.pem")]);
    return { upstreams: status.upstreams, pac: await pac?.text(), hasCertificate: certificate !== null };
  },
  view({ upstreams, pac, hasCertificate }, pool) {
    const proxy = /PROXY ([^;"\s]+)/.exec(pac ?? "")?.[1] ?? "127.0.0.1:7625";
    return [
      h("h1", {}, "Set up a client"),
      h("p", { class: "lead" }, "Any client that knows a proxy will do, unchanged. ",
        h("code", {}, proxy), pac ? " is where this server listens." : " is where the proxy listens unless your configuration says otherwise."),
      step("One command, one shell", "Everything a common client looks for, certificates included.", [
        snippet("Run one command with it", "rockpool run -- npm test", pool), snippet("A shell", 'eval "$(rockpool env)"', pool)]),
      step("By hand", "The variables most clients hear.", [
        snippet("Shell", `export http_proxy=http://${proxy} https_proxy=http://${proxy}`, pool),
        snippet("curl", `curl -x http://${proxy} ${upstreams[0]?.origin ?? "http://api.example.com"}/`, pool),
        snippet("git", `git config --global http.proxy http://${proxy}`, pool)]),
      step("A browser", "Set the address of the proxy settings file; it sends only what should go through here.", [
        pac ? snippet("Proxy settings file", `${location.origin}/proxy.pac`, pool) : h("p", { class: "quiet" }, "This server offers no ", h("code", {}, "/proxy.pac"), ".")]),
      step("HTTPS", "To answer HTTPS requests while offline, the client has to trust this installation's own certificate authority. Its key never leaves this machine.", [
        hasCertificate
          ? [h("p", {}, h("a", { class: "button", href: "/ca.pem", download: "rockpool-ca.pem" }, "Download the certificate")), snippet("Or let it install itself", "rockpool ca install", pool)]
          : [h("p", {}, "There is no certificate authority yet."), snippet("Make one", "rockpool ca init", pool)]]),
      step("An upstream of your own", "Declaring it is your consent to keep its answers for offline use and to queue its writes.", [
        snippet("rockpool.yaml", "upstreams:\n  - name: notes\n    origin: https://api.example.com\n    gateway: 127.0.0.1:7630   # plain HTTP in front of it", pool),
        snippet("Check it, and take it over without a restart", "rockpool config check rockpool.yaml && kill -HUP $(pidof rockpool)", pool)]),
    ];
  },
};

const step = (title, words, content) => h("section", { class: "step" }, h("h2", {}, title), h("p", { class: "quiet" }, words), content);

async function there(target) {
  try {
    const answer = await fetch(target, { cache: "no-store" });
    return answer.ok ? answer : null;
  } catch {
    return null;
  }
}

function snippet(name, text, pool) {
  return h("div", { class: "snippet", "data-key": name },
    h("p", { class: "small" }, name),
    h("pre", { tabindex: 0, "aria-label": name }, text),
    h("button", { class: "button small", "aria-label": `Copy: ${name}`, onclick: async () => {
      await navigator.clipboard.writeText(text).then(() => pool.say("Copied."), () => pool.say("Copying is not allowed here; select the text.", "bad"));
    } }, "Copy"));
}
