# Varnish in front of Tollgate: public reads are kept for EDGE_MAX_AGE, dropped when a purge event says so, and answered while
# Tollgate is stopped. Varnish 6.4 or later with the vmod xkey (Debian: packages varnish and varnish-modules).
vcl 4.1;

import std;
import xkey;

backend tollgate {
    .host = "tollgate.internal";
    .port = "3000";
    .connect_timeout = 1s;
    .first_byte_timeout = 15s;
    .probe = { .url = "/health"; .interval = 2s; .timeout = 1s; .window = 3; .threshold = 2; .initial = 2; }
}

# From where Tollgate posts its events.
acl tollgate_instances {
    "127.0.0.1";
    "::1";
}

sub vcl_recv {
    # The webhook of the events purge. Its path is secret, because Varnish cannot check the signature. A request without keys is
    # the test of the webhook.
    if (req.url == "/purge/CHANGE-THIS-TO-A-LONG-RANDOM-WORD" && req.method == "POST") {
        if (client.ip !~ tollgate_instances) {
            return (synth(403));
        }
        if (req.http.Surrogate-Key) {
            set req.http.Purged = xkey.purge(req.http.Surrogate-Key);
        }
        return (synth(204));
    }
    # Everything but reads of the registry passes, and what has a token: that may be a private read.
    if ((req.method != "GET" && req.method != "HEAD") || req.url !~ "^/(v0|v0\.1|registries)/" || req.http.Authorization) {
        return (pass);
    }
    unset req.http.Cookie;
    # A response that is out of date is sent while a new one is read, and as long as Tollgate does not answer.
    if (req.restarts == 0 && std.healthy(req.backend_hint)) {
        set req.grace = 60s;
    } else {
        set req.grace = 24h;
    }
    return (hash);
}

sub vcl_backend_response {
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    if (beresp.http.Cache-Control !~ "^public") {
        set beresp.uncacheable = true;
        set beresp.ttl = 60s;
        return (deliver);
    }
    # Without EDGE_MAX_AGE the time is that of Cache-Control.
    if (beresp.http.CDN-Cache-Control ~ "^max-age=[0-9]+") {
        set beresp.ttl = std.duration(regsub(beresp.http.CDN-Cache-Control, "^max-age=([0-9]+).*$", "\1s"), 5s);
    }
    set beresp.grace = 24h;
    set beresp.http.xkey = beresp.http.Surrogate-Key;
    # They are those of one client.
    unset beresp.http.X-RateLimit-Limit;
    unset beresp.http.X-RateLimit-Remaining;
    unset beresp.http.X-RateLimit-Reset;
    unset beresp.http.X-Request-Id;
}

sub vcl_deliver {
    if (resp.status >= 500 && req.restarts == 0 && (req.method == "GET" || req.method == "HEAD")) {
        return (restart);
    }
    set resp.http.X-Cache = "miss";
    if (obj.hits > 0) {
        set resp.http.X-Cache = "hit";
    }
    unset resp.http.xkey;
    unset resp.http.Surrogate-Key;
    unset resp.http.Cache-Tag;
    unset resp.http.CDN-Cache-Control;
    unset resp.http.Via;
    unset resp.http.X-Varnish;
}
