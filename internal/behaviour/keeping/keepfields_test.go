package keeping_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// keepAmount keeps two fields of every request.
func keepAmount(cfg *oncehttp.Config) { cfg.KeepFields = []string{"/amount", "/order"} }

// TestKeepFields: whichever way an operation is begun, its tombstone has what KeepFields
// names of its request, as the first request under its key had it.
func TestKeepFields(t *testing.T) {
	t.Parallel()
	const body = `{"amount":1200,"order":"o-7","card":"4111"}`
	want := []persist.KeptField{{Pointer: "/amount", Value: "1200"}, {Pointer: "/order", Value: "o-7"}}
	for name, begin := range map[string]func(t *testing.T, c *oncehttp.Client) error{
		"DoKey": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.DoKey(clienttest.Post(t, body), "k")
			return err
		},
		"Enqueue and Resume": func(t *testing.T, c *oncehttp.Client) error {
			if err := c.Enqueue(clienttest.Post(t, body), "k"); err != nil {
				return err
			}
			for _, err := range c.Resume(t.Context()) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"StandardClient": func(t *testing.T, c *oncehttp.Client) error {
			req := clienttest.Post(t, body)
			req.Header.Set("Idempotency-Key", "k")
			resp, err := c.StandardClient().Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				err = errors.Join(err, resp.Body.Close())
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}, clienttest.On(j, keepAmount))
				if err := begin(t, c); err != nil {
					t.Fatal(err)
				}
				prepared, err := c.Prepare(clienttest.Post(t, body), "k")
				if err != nil || !slices.Equal(prepared.KeptFields, want) {
					t.Errorf("Prepare: %+v, %v; want %+v", prepared.KeptFields, err, want)
				}
				time.Sleep(24 * time.Hour)
				if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
					t.Fatalf("Sweep: %d, %v", n, err)
				}
				rec := clienttest.Lookup(t, c, "k")
				if !rec.Swept || rec.Body != nil || !slices.Equal(rec.KeptFields, want) {
					t.Errorf("the tombstone is %+v; want the fields %+v", rec, want)
				}
			})
		})
	}
}

// TestKeepFieldsDoNotIdentify: a client that keeps fields and one that does not mean
// the same operation by one key and request.
func TestKeepFieldsDoNotIdentify(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
		before, _ := clienttest.New(t, w, clienttest.On(j))
		if _, err := before.DoKey(clienttest.Post(t, `{"amount":1}`), "k"); err != nil {
			t.Fatal(err)
		}
		after, _ := clienttest.New(t, w, clienttest.On(j, keepAmount))
		resp, err := after.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
		if err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
			t.Errorf("the same request again: %v, %v; want the answer from the journal", resp, err)
		}
	})
}

// TestKeepFieldsConfig: what must not be kept, and what is no pointer, is an error at
// once, in one line that names the field.
func TestKeepFieldsConfig(t *testing.T) {
	t.Parallel()
	for _, fields := range [][]string{{"amount"}, {"/card/token"}, {"/amount", "/amount"}, strings.Split("/1 /2 /3 /4 /5 /6 /7 /8 /9", " ")} {
		_, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: http.DefaultTransport, KeepFields: fields})
		if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "KeepFields") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want ErrConfig that names KeepFields", fields, err)
		}
	}
}
