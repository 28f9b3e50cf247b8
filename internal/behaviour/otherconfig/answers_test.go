package otherconfig_test

import (
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestLargeRefusalIsNotAskedFor: a refusal whose body was too large for the client that got it is final for every client: it is not
// asked for again, since the server might act this time.
func TestLargeRefusalIsNotAskedFor(t *testing.T) {
	t.Parallel()
	small := func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 4 }
	for name, pair := range map[string]companions{"a larger reader": {one: small, other: plainly}, "the same": {one: small, other: small}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"declined":true}`, Header: "Content-Type: application/problem+json"}, {Status: 201, Body: "{}"}}}
				first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, pair.one))
				resp, err := first.DoKey(companyRequest(t), "k")
				if err != nil || resp.StatusCode != 402 {
					t.Fatal(resp, err)
				}
				if err := resp.Body.Close(); err != nil {
					t.Fatal(err)
				}
				second, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, pair.other))
				_, err = second.DoKey(companyRequest(t), "k")
				var e *oncehttp.Error
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !errors.As(err, &e) || e.Effect() != oncehttp.EffectRefused || w.Count() != 1 {
					t.Errorf("%v after %d sends", err, w.Count())
				}
			})
		})
	}
}
