package neighbours_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// A body that names two keys is refused, and "no effect" is not said of it while either of the two is in doubt.
func TestNeighbourTwoKeysInBody(t *testing.T) {
	t.Parallel()
	inBody := bound("POST")
	inBody.Name, inBody.Carrier = "in-body", profile.Carrier{Place: profile.Body, Name: "/idempotency_key"}
	for name, body := range map[string]string{
		"the first":  `{"idempotency_key":"k-1","idempotency_key":"k-2"}`,
		"the last":   `{"idempotency_key":"k-2","idempotency_key":"k-1"}`,
		"neither":    `{"idempotency_key":"k-3","idempotency_key":"k-2"}`,
		"both":       `{"idempotency_key":"k-1","idempotency_key":"k-1"}`,
		"an escaped": `{"idempotency_key":"k-2","idempotency\u005fkey":"k-1"}`,
	} {
		for _, way := range []string{"Do", "Transport", "Enqueue"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = inBody; clienttest.OneAttempt(cfg) })
					if _, err := c.Do(clienttest.Post(t, `{"idempotency_key":"k-1"}`)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Fatal(err)
					}
					var err error
					switch way {
					case "Do":
						_, err = c.Do(clienttest.Post(t, body))
					case "Transport":
						_, err = c.StandardClient().Do(clienttest.Post(t, body))
					default:
						err = c.Enqueue(clienttest.Post(t, body), "")
					}
					want := oncehttp.ErrOutcomeUnknown
					if name == "neither" {
						want = oncehttp.ErrNoEffect
					}
					if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, want) || w.Count() != 1 {
						t.Errorf("%v after %d sends, want %v after one", err, w.Count(), want)
					}
					clienttest.ExactlyOne(t, err)
				})
			})
		}
	}
}
