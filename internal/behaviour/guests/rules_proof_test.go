package guests_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
)

// withContext are the places that get a context.
func withContext() map[string]place {
	all := places()
	maps.DeleteFunc(all, func(name string, p place) bool {
		return p.bare || strings.HasPrefix(name, "Client.") || strings.HasPrefix(name, "Config.Limiter") || name == "persist.Notifier.Notify"
	})
	return all
}

// TestRuleOwnTrace: in each place that gets a context another connection is asked for under it. Where that fails, and the operation's own
// answer is lost after the effect over a transport that shows no events, nobody is told of no effect. Where it succeeds, to another host
// or to the operation's own, and the operation's own connection is refused, the proof is gone.
func TestRuleOwnTrace(t *testing.T) {
	t.Parallel()
	ruleCells(t, withContext(), []string{"lost", "refused", "refused beside its own host"}, func(r *rule, variant string) {
		traced := false
		r.way.background = false
		r.tune = onceOnly
		r.prepare = func() {
			r.server.silent.Store(variant == "lost")
			r.server.loses.Store(variant == "lost")
			r.server.refuses.Store(variant != "lost")
		}
		r.ask.do = func(_ *cell, ctx context.Context, _ oncehttp.Key) error {
			traced = httptrace.ContextClientTrace(ctx) != nil
			host := "audit.example.com"
			if variant == "refused beside its own host" {
				host = "api.example.com:443"
			}
			return audit(ctx, host, variant == "lost")
		}
		r.wasTraced = func() bool { return traced }
	}, func(r *rule, variant string, e ending) {
		rec, known := r.record()
		took := r.server.ledger()["payment"] > 0
		doubtful := variant == "lost" && took || variant != "lost" && r.wasTraced() && !took
		if !doubtful {
			return
		}
		if errors.Is(e.err, oncehttp.ErrNoEffect) {
			r.Errorf("the operation: %v", e.err)
		}
		if !r.assigned() && (!known || !rec.MaybeSent || rec.Sends == 0) {
			r.Errorf("its record says sent %t, %d times; there is one: %t", rec.MaybeSent, rec.Sends, known)
		}
	})
}

// audit sends a line to a host under this context; a dead one lets nobody connect.
func audit(ctx context.Context, host string, dead bool) error {
	own := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		if dead {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
				_, _ = io.WriteString(far, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			}
		}()
		return near, nil
	}}
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+host+"/line", nil)
	if err != nil {
		return err
	}
	resp, err := own.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
