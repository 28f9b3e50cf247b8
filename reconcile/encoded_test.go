package reconcile_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/reconcile"
)

// packed is a text in a content coding.
func packed(coding, text string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	default: // none, or one that nobody here knows
		return []byte(text)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// TestEncodedAnswers: each reconciler reads the text of an answer that comes encoded although nobody asked for that, and of a recorded
// one. What cannot be decoded, or is more than the bound then, settles nothing.
func TestEncodedAnswers(t *testing.T) {
	t.Parallel()
	const conflict = `{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`
	byReference := profile.None()
	byReference.Reference = &profile.Reference{Path: "{path}/{/order}", Same: []profile.Same{{Request: "/order", Resource: "/order"}}}
	resource := `{"order":"o1","idempotency_key":"k1","metadata":{"order":"o1"}}`
	for name, r := range map[string]struct {
		ask    reconcile.Func
		form   string
		answer string
	}{
		"Stripe":       {authorized().Stripe("/metadata/order"), "metadata[order]=o1", `{"data":[` + resource + `],"has_more":false}`},
		"Increase":     {authorized().Increase("/order"), "order=o1", `{"data":[` + resource + `]}`},
		"GoCardless":   {authorized().GoCardless(), "order=o1", resource},
		"by reference": {authorized().ByReference(byReference), "order=o1", resource},
	} {
		for _, coding := range []string{"", "gzip", "x-gzip", "deflate", "br"} {
			for _, bomb := range []bool{false, true} {
				s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if coding != "" {
						w.Header().Set("Content-Encoding", coding)
					}
					answer := r.answer
					if bomb {
						answer += strings.Repeat(" ", 9<<20)
					}
					_, _ = w.Write(packed(coding, answer))
				})
				rec := s.held("/orders", r.form)
				rec.Answer = &persist.Answer{Status: 409, Header: http.Header{"Content-Encoding": {coding}}, Body: packed(coding, conflict)}
				res, err := r.ask(t.Context(), rec)
				if coding == "br" || bomb {
					if err == nil || res.Effect != "" || res.Answer != nil {
						t.Errorf("%s in %q, bomb %t: %v, %v; want an error", name, coding, bomb, res.Effect, err)
					}
					continue
				}
				want(t, name+" in "+coding, res, err, resource)
			}
		}
	}
}
