package mockserver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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

// Webhooks sends an event for each effect of which the profile lists a proof (profile.Webhook), as the API does: signed, and again
// while it is not answered 2xx.
type Webhooks struct {
	_ struct{}

	// URL is where the events go: http, at this machine.
	URL string
	// Secret signs them.
	Secret string
	// Test: the events are of the test environment.
	Test bool
	// Reference is a business reference beside those of the profile: its place in an event and in a request. Zero: none.
	Reference profile.EventField
	// Script is the fault of each event, in the order of the effects. When it is used up, all goes well.
	Script []EventFault
	// Delay is the wait before a late event, and before one is sent again. Zero: 50 ms.
	Delay time.Duration
	// Transport sends the events. Nil: a transport of their own.
	Transport http.RoundTripper
}

// EventFault is what happens to an event on its way.
type EventFault string

// The faults of events.
const (
	EventSent    EventFault = ""        // none
	EventLate    EventFault = "late"    // it comes after the Delay
	EventTwice   EventFault = "twice"   // it comes twice
	EventAfter   EventFault = "after"   // it comes after the next one
	EventForged  EventFault = "forged"  // it is signed by another secret, and then comes as it should
	EventFalse   EventFault = "false"   // only one that is signed by another secret comes
	EventOther   EventFault = "other"   // it is of the other environment
	EventDropped EventFault = "dropped" // it never comes
)

const (
	eventDelay    = 50 * time.Millisecond
	eventAttempts = 5    // of one event
	eventsWaiting = 1000 // at once; more are dropped
	eventTimeout  = 10 * time.Second
)

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

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// events sends events. It is safe for concurrent use.
type events struct {
	*Webhooks
	client *http.Client

	mu      sync.Mutex
	effects int       // with an event
	waiting int       // being sent
	kept    []*letter // until the next one was sent
	answers map[int]int
}

// letter is one event on its way.
type letter struct {
	body  []byte
	where *profile.Webhook
	fault EventFault
}

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

// EventAnswers returns how often events were answered with each status, and with 0 how often there was no answer.
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

// tell sends the event of an effect, if there is one.
func (s *Server) tell(x *exchange) {
	e := s.events
	if e == nil {
		return
	}
	p := proofFor(s.cfg.Profile.Webhook, x.Request)
	if p == nil {
		return
	}
	e.mu.Lock()
	fault := EventSent
	if e.effects < len(e.Script) {
		fault = e.Script[e.effects]
	}
	e.effects++
	l := &letter{e.body(s.cfg.Profile.Webhook, p, x, fault), s.cfg.Profile.Webhook, fault}
	before := e.kept
	e.kept = nil
	if fault == EventAfter {
		e.kept = []*letter{l}
	}
	e.mu.Unlock()
	if fault != EventAfter && fault != EventDropped {
		s.post(l, before)
		return
	}
	s.post(nil, before)
}

// post sends an event, and then those kept back for it. The request that made it is not held up.
func (s *Server) post(l *letter, then []*letter) {
	e := s.events
	if l != nil {
		then = append([]*letter{l}, then...)
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

// send sends one event, with its fault.
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

// deliver sends a body until it is answered 2xx or 4xx, a few times at most.
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

// request makes the request of an event, signed.
func (e *events) request(ctx context.Context, l *letter, secret string) (*http.Request, error) {
	body, header := signedEvent(l.where.Scheme, secret, e.URL, time.Now(), l.body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// signedEvent signs a body as an API does. It is code of the mock's own: the client verifies by other code.
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

// proofFor returns the event of which the profile says that it proves an operation of this request.
func proofFor(w *profile.Webhook, r *http.Request) *profile.EventProof {
	for i := range w.Proofs {
		for _, o := range w.Proofs[i].Operations {
			if o.Method == r.Method && fits(o.Path, r.URL.EscapedPath()) {
				return &w.Proofs[i]
			}
		}
	}
	return nil
}

// fits reports whether a path has the segments of a pattern.
func fits(pattern, path string) bool {
	want, is := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(is) {
		return false
	}
	for i := range want {
		if want[i] != is[i] && (!strings.HasPrefix(want[i], "{") || is[i] == "") {
			return false
		}
	}
	return true
}

// body makes the body of an event. The caller holds mu.
func (e *events) body(w *profile.Webhook, p *profile.EventProof, x *exchange, fault EventFault) []byte {
	request := keylayer.AsJSON(x.Request, x.Body)
	event, whole := map[string]any{}, map[string]any{}
	types := strings.Fields(w.Type)
	for i, part := range strings.SplitN(p.Type, ".", len(types)) {
		put(event, types[i], part)
	}
	put(event, w.ID, fmt.Sprintf("evt_%d", e.effects))
	for _, v := range p.Where {
		put(event, v.Pointer, v.Equals[0])
	}
	put(event, p.Key, x.seen.Key)
	for _, f := range []profile.EventField{p.Reference, p.Amount, p.Currency, e.Reference} {
		if value, found := keylayer.LookupText(request, f.Request); found && f.Event != "" {
			var spelled any = value
			if f == p.Amount {
				spelled = json.Number(value)
			}
			put(event, f.Event, spelled)
		}
	}
	if w.Scheme == "adyen" {
		put(event, "/additionalData/hmacSignature", "")
	}
	if account := x.Request.Header.Get(w.AccountHeader); w.AccountHeader != "" && account != "" {
		put(event, w.Account, account)
	}
	if account, found := keylayer.LookupText(request, w.AccountField); w.AccountField != "" && found {
		put(event, w.Account, account)
	}
	live := !e.Test
	if fault == EventOther {
		live = !live
	}
	if w.Events == "" {
		whole = event
	} else {
		put(whole, w.Events, []any{within(w.Event, event)})
	}
	if w.Live != "" {
		put(whole, w.Live, live == (w.LiveValue == "true"))
	}
	text, err := json.Marshal(whole)
	if err != nil { // an amount that is no number
		return nil
	}
	return text
}

// within puts an event at a pointer of its entry.
func within(pointer string, event map[string]any) any {
	if pointer == "" {
		return event
	}
	entry := map[string]any{}
	put(entry, pointer, event)
	return entry
}

// put puts a value at a pointer; an empty one is nowhere.
func put(at map[string]any, pointer string, value any) {
	if pointer == "" {
		return
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	for _, name := range names[:len(names)-1] {
		next, is := at[name].(map[string]any)
		if !is {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	at[names[len(names)-1]] = value
}
