package webhook_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
)

// TestMerchants: of an API that sends the events of all merchants of an application under one secret, an event counts for its merchant only.
func TestMerchants(t *testing.T) {
	t.Parallel()
	all := apis()
	square, gocardless := all[0], all[2]
	partner := func(order string) string {
		return strings.Replace(gocardless.event(order), `"links":{"payment"`, `"links":{"organisation":"OR1","payment"`, 1)
	}
	for name, row := range map[string]struct {
		a       api
		event   string
		account string
		happens bool
	}{
		"square, its merchant":                        {square, square.event("o1"), "M", true},
		"square, another merchant":                    {square, square.event("o1"), "N", false},
		"square, in other case":                       {square, square.event("o1"), "m", false},
		"square, no merchant":                         {square, strings.Replace(square.event("o1"), `"merchant_id":"M",`, "", 1), "M", false},
		"square, a list":                              {square, strings.Replace(square.event("o1"), `"merchant_id":"M"`, `"merchant_id":["M"]`, 1), "M", false},
		"gocardless, one merchant":                    {gocardless, gocardless.event("o1"), "", true},
		"gocardless, a partner's event, its merchant": {gocardless, partner("o1"), "OR1", true},
		"gocardless, a partner's event, another":      {gocardless, partner("o1"), "OR2", false},
		"gocardless, a partner's event, none named":   {gocardless, partner("o1"), "", false},
		"gocardless, no merchant, one named":          {gocardless, gocardless.event("o1"), "OR1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := row.a
			a.merchant = row.account
			c, events, h := a.client(t, nil)
			a.lose(t, c, "k", "o1")
			body, header := a.signed(t, row.event)
			if code := deliver(t, h, header, body); code != http.StatusOK {
				t.Errorf("answered %d, want 200", code)
			}
			if row.happens {
				settled(t, c, "k")
				return
			}
			unchanged(t, c)
			told := events.Of(oncehttp.EventUnproved)
			if len(told) == 0 || !strings.Contains(told[len(told)-1].Err.Error(), "merchant") {
				t.Errorf("told %+v, want the reason", told)
			}
		})
	}
}

// TestAccountOfAHandler: a handler that could not tell the merchants apart, or that compares none, is not made.
func TestAccountOfAHandler(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		api     int
		account string
	}{"square without": {0, ""}, "adyen with": {1, "Shop"}} {
		a := apis()[row.api]
		c, _, _ := a.client(t, nil)
		_, err := oncehttp.Webhook(c, oncehttp.WebhookConfig{Secrets: [][]byte{[]byte(a.secret)}, URL: address, Account: row.account})
		if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "Account") {
			t.Errorf("%s: %v, want ErrConfig that names Account", name, err)
		}
	}
}

var (
	stamped = regexp.MustCompile(`("created_at":|"eventDate":)"[^"]*"`)
	seconds = regexp.MustCompile(`"created":[0-9]+`)
)

// TestEarlierEvents: an event that was created long before the operation was sent is about another one, of the same reference or key, and settles
// nothing, and contradicts nothing. One that does not say when it was created proves nothing either.
func TestEarlierEvents(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for name, row := range map[string]struct {
		created string
		happens bool
	}{
		"now": {at(0), true}, "half an hour before": {at(-30 * time.Minute), true}, "two hours before": {at(-2 * time.Hour), false},
		"later": {at(48 * time.Hour), true}, "in another zone": {time.Now().In(time.FixedZone("", -8*3600)).Format(time.RFC3339), true},
		"none": {"", false}, "a word": {"today", false},
	} {
		for _, a := range apis() {
			t.Run(a.name+", "+name, func(t *testing.T) {
				t.Parallel()
				c, events, h := a.client(t, nil)
				a.lose(t, c, "k", "o1")
				body, header := a.signed(t, stamped.ReplaceAllString(a.event("o1"), `${1}"`+row.created+`"`))
				if code := deliver(t, h, header, body); code != http.StatusOK {
					t.Errorf("answered %d, want 200", code)
				}
				if row.happens {
					settled(t, c, "k")
					return
				}
				unchanged(t, c)
				clienttest.Absent(t, c, "k")
				deliver(t, h, header, body)
				if rec := clienttest.Lookup(t, c, "k"); rec.Evidence != nil || len(events.Of(oncehttp.EventContradicted)) != 0 {
					t.Errorf("evidence %v, %d contradicted; want none", rec.Evidence, len(events.Of(oncehttp.EventContradicted)))
				}
			})
		}
	}
}

// TestEarlierSeconds: likewise, of an event by its key whose time is a number of seconds.
func TestEarlierSeconds(t *testing.T) {
	t.Parallel()
	stamp := func(d time.Duration) string { return fmt.Sprintf(`"created":%d`, time.Now().Add(d).Unix()) }
	for created, happens := range map[string]bool{
		stamp(-30 * time.Minute): true, stamp(-2 * time.Hour): false, `"created":null`: false, `"created":1e9`: false, `"created":{}`: false,
	} {
		c, _, h := lost(t, nil)
		if code := post(t, h, seconds.ReplaceAllLiteralString(charged("k"), created)); code != http.StatusOK {
			t.Errorf("%s is answered %d, want 200", created, code)
		}
		if happens {
			settled(t, c, "k")
			continue
		}
		unchanged(t, c)
	}
}
