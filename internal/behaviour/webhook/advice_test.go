package webhook_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestNoAdviceAgainstAnEvent: a call with another content under the key of a refused operation is advised to take the next generation. Once an event of the
// API says that the operation happened, nobody is advised to pay again.
func TestNoAdviceAgainstAnEvent(t *testing.T) {
	t.Parallel()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: "{}"}}}, stripe)
	h := handler(t, c, nil)
	if resp, err := c.DoKey(charge(t), "k"); err != nil || resp.StatusCode != 402 {
		t.Fatal(resp, err)
	}
	for _, contradicted := range []bool{false, true} {
		if contradicted {
			if code := post(t, h, charged("k")); code != http.StatusOK || clienttest.Lookup(t, c, "k").Evidence == nil {
				t.Fatalf("answered %d, evidence %v", code, clienttest.Lookup(t, c, "k").Evidence)
			}
		}
		other := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=200&currency=eur")
		other.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		_, err := c.DoKey(other, "k")
		if advised := err != nil && strings.Contains(err.Error(), "a new try needs a new key"); !errors.Is(err, oncehttp.ErrKeyReused) || advised == contradicted {
			t.Errorf("contradicted %t: %v", contradicted, err)
		}
	}
}
