package mockserver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// Webhooks configures events: one for each effect with a proof in the profile (profile.Webhook), signed as the API does. An event
// without an answer, or with a 5xx, is sent again, five times in all.
type Webhooks struct {
	_ struct{}

	// URL receives the events: http, on this machine.
	URL string
	// Secret is the key of the signatures; not empty.
	Secret string
	// Test: the events are of the test environment.
	Test bool
	// Merchant is the merchant in the events, where the profile has a place for it (profile.Webhook.Merchant). Zero: "mock", or none where an
	// event need not have it.
	Merchant string
	// Reference is a business reference beyond those of the profile: its place in an event and in a request. Zero: none.
	Reference profile.EventField
	// Script is the fault of each event, in the order of the effects. When it is used up, all goes well.
	Script []EventFault
	// Delay is the wait before a late event, and before one is sent again. Zero: 50 ms.
	Delay time.Duration
	// Transport sends the events. Nil: http.DefaultTransport.
	Transport http.RoundTripper
}

// EventFault is a fault in the delivery of an event. The zero value is none.
type EventFault string

// The faults of events.
const (
	EventSent    EventFault = ""        // none
	EventLate    EventFault = "late"    // it comes after the Delay
	EventTwice   EventFault = "twice"   // it comes twice
	EventAfter   EventFault = "after"   // it comes after the next one
	EventForged  EventFault = "forged"  // it comes first with the signature of another secret, then with its own
	EventFalse   EventFault = "false"   // it comes only with the signature of another secret
	EventOther   EventFault = "other"   // it is marked as of the other environment (Webhooks.Test)
	EventDropped EventFault = "dropped" // it never comes
)

const (
	eventDelay    = 50 * time.Millisecond
	eventAttempts = 5    // deliveries of one event without an answer below 500
	eventsWaiting = 1000 // events in delivery at once; more are dropped
	eventTimeout  = 10 * time.Second
)

// validate returns the first mistake as one line, or nil. p may be nil. Events go to this machine only: made-up ones must not reach a real receiver.
func (w *Webhooks) validate(p *profile.Profile) error {
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) {
		return fmt.Errorf("mockserver: Webhooks.URL: %q, want http at this machine, such as http://127.0.0.1:8080", w.URL)
	}
	switch {
	case p == nil || p.Webhook == nil:
		return errors.New("mockserver: Webhooks: the profile has no events")
	case w.Secret == "":
		return errors.New("mockserver: Webhooks.Secret is empty")
	case w.Delay < 0:
		return fmt.Errorf("mockserver: Webhooks.Delay: %v is negative", w.Delay)
	}
	for _, f := range w.Script {
		switch f {
		case EventSent, EventLate, EventTwice, EventAfter, EventForged, EventFalse, EventOther, EventDropped:
		default:
			return fmt.Errorf("mockserver: Webhooks.Script: %q is no fault of an event", f)
		}
	}
	return nil
}

// isLoopback reports whether host is localhost or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// events delivers events in the background. It is safe for concurrent use.
type events struct {
	*Webhooks // a copy with its defaults
	client    *http.Client

	mu      sync.Mutex  // guards the fields below
	effects int         // effects with an event so far: the next entry of Script
	waiting int         // events in delivery, at most eventsWaiting
	kept    []*letter   // an EventAfter, until the next event was sent
	answers map[int]int // deliveries by status; 0: no answer
}

// letter is one event to be delivered. It is not changed.
type letter struct {
	body    []byte // unsigned
	webhook *profile.Webhook
	fault   EventFault
}

// newEvents returns the sender of the webhook events that w configures; nil if w is nil.
func newEvents(w *Webhooks) *events {
	if w == nil {
		return nil
	}
	own := *w
	if own.Delay == 0 {
		own.Delay = eventDelay
	}
	return &events{Webhooks: &own, client: &http.Client{Transport: own.Transport, Timeout: eventTimeout}, answers: map[int]int{}}
}

// EventAnswers returns the number of deliveries of events by the status of their answer, 0 standing for no answer.
// The caller owns the map.
func (s *Server) EventAnswers() map[int]int {
	all := map[int]int{}
	if s.events == nil {
		return all
	}
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	for status, n := range s.events.answers {
		all[status] = n
	}
	return all
}

// tell sends the event (a webhook) about the effect of x in the background, if the profile has one for it. The Script of the events may let it come
// late, twice, after the next event (until then it is in kept), or never. The nth fault is for the nth effect with such an event. x is a send, and
// its key was read.
func (s *Server) tell(x *exchange) {
	e := s.events
	if e == nil {
		return
	}
	proof := proofFor(s.cfg.Profile.Webhook, x.Request)
	if proof == nil {
		return
	}
	e.mu.Lock()
	fault := EventSent
	if e.effects < len(e.Script) {
		fault = e.Script[e.effects]
	}
	e.effects++
	event := &letter{e.body(s.cfg.Profile.Webhook, proof, x, fault), s.cfg.Profile.Webhook, fault}
	before := e.kept
	e.kept = nil
	if fault == EventAfter {
		e.kept = []*letter{event}
	}
	e.mu.Unlock()
	if fault != EventAfter && fault != EventDropped {
		s.post(event, before)
		return
	}
	s.post(nil, before)
}

// post delivers an event (nil: none), and then those of then, in order, in one goroutine: the request with the effect
// is not delayed. They are dropped if eventsWaiting are in delivery, or the server is closed.
func (s *Server) post(event *letter, then []*letter) {
	e := s.events
	if event != nil {
		then = append([]*letter{event}, then...)
	}
	e.mu.Lock()
	full := e.waiting+len(then) > eventsWaiting
	if !full {
		e.waiting += len(then)
	}
	e.mu.Unlock()
	if full || len(then) == 0 || !s.enter() {
		return
	}
	go func() {
		defer s.leave()
		for _, one := range then {
			e.send(s.life, one)
			e.mu.Lock()
			e.waiting--
			e.mu.Unlock()
		}
	}()
}

// send delivers one event with its fault: late, twice, or with a forged signature before or in the place of the right one. It returns when the event
// was answered, given up, or ctx has ended.
func (e *events) send(ctx context.Context, l *letter) {
	switch l.fault {
	case EventLate:
		if !keylayer.Pause(e.Delay, ctx.Done(), nil) {
			return
		}
	case EventTwice:
		e.deliver(ctx, l, e.Secret)
	case EventForged, EventFalse:
		e.deliver(ctx, l, hex.EncodeToString([]byte("another secret")))
	}
	if l.fault != EventFalse {
		e.deliver(ctx, l, e.Secret)
	}
}

// deliver posts an event signed with secret until it is accepted or refused for good (an answer of 200 to 499), eventAttempts times at most, and
// counts each answer by its status; 0 is no answer.
func (e *events) deliver(ctx context.Context, l *letter, secret string) {
	for range eventAttempts {
		status := 0
		if req, err := e.request(ctx, l, secret); err == nil {
			if resp, err := e.client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
				_ = resp.Body.Close()
				status = resp.StatusCode
			}
		}
		e.mu.Lock()
		e.answers[status]++
		e.mu.Unlock()
		if status >= 200 && status < 500 || !keylayer.Pause(e.Delay, ctx.Done(), nil) {
			return
		}
	}
}

// request returns the signed request of an event. Where the API's scheme signs a time, as Stripe's, it is that of the call.
func (e *events) request(ctx context.Context, l *letter, secret string) (*http.Request, error) {
	body, header := signedEvent(l.webhook.Scheme, secret, e.URL, time.Now(), l.body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// signedEvent returns the body and the header of an event, signed by an API's scheme (profile.Webhook.Scheme); an unknown scheme signs nothing.
// address is the receiver's URL, which square signs; adyen signs some fields of the body, with a secret in hexadecimal digits, and has the signature
// in the body. The code shares nothing with the client's verification, so that one can test the other.
func signedEvent(scheme, secret, address string, at time.Time, body []byte) ([]byte, http.Header) {
	sum := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha256.New, key)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	header, key := http.Header{}, []byte(secret)
	switch scheme {
	case "stripe":
		stamp := strconv.FormatInt(at.Unix(), 10)
		header.Set("Stripe-Signature", "t="+stamp+",v1="+hex.EncodeToString(sum(key, []byte(stamp+"."), body)))
	case "square":
		header.Set("X-Square-Hmacsha256-Signature", base64.StdEncoding.EncodeToString(sum(key, []byte(address), body)))
	case "gocardless":
		header.Set("Webhook-Signature", hex.EncodeToString(sum(key, body)))
	case "github":
		header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum(key, body)))
	case "shopify":
		header.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(sum(key, body)))
	case "adyen":
		key, _ = hex.DecodeString(secret)
		var signed []string
		for _, field := range []string{"pspReference", "originalReference", "merchantAccountCode", "merchantReference", "amount/value", "amount/currency", "eventCode", "success"} {
			text, _ := keylayer.LookupText(body, "/notificationItems/0/NotificationRequestItem/"+field)
			signed = append(signed, text)
		}
		signature := base64.StdEncoding.EncodeToString(sum(key, []byte(strings.Join(signed, ":"))))
		body = bytes.Replace(body, []byte(`"hmacSignature":""`), []byte(`"hmacSignature":"`+signature+`"`), 1)
	}
	return body, header
}
