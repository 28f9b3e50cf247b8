package clienttest

import (
	"fmt"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Enqueue enqueues n operations, "k0" and so on.
func Enqueue(t *testing.T, c *oncehttp.Client, n int) {
	t.Helper()
	for i := range n {
		if err := c.Enqueue(Post(t, fmt.Sprintf(`{"n":%d}`, i)), oncehttp.Key(fmt.Sprintf("k%d", i))); err != nil {
			t.Fatal(err)
		}
	}
}

// EnqueueAt enqueues n operations of a host, under the host's name with a number from 0 on as the key.
func EnqueueAt(t *testing.T, c *oncehttp.Client, host string, n int) {
	t.Helper()
	for i := range n {
		if err := c.Enqueue(Request(t, "POST", "https://"+host+"/", "{}"), oncehttp.Key(fmt.Sprint(host, i))); err != nil {
			t.Fatal(err)
		}
	}
}

// HoldAt begins n held operations of a host: nothing more of them is sent until a person decides. Their keys are the host's name with a number from 0 on. They
// count as maybe sent.
func HoldAt(t *testing.T, c *oncehttp.Client, j persist.Journal, host string, n int) {
	t.Helper()
	for i := range n {
		rec, err := c.Prepare(Request(t, "POST", "https://"+host+"/", "{}"), oncehttp.Key(fmt.Sprint(host, i)))
		if err != nil {
			t.Fatal(err)
		}
		rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent = persist.StateHeld, persist.HoldExpired, true, rec.Created
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}
