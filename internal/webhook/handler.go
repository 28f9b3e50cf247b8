// Package webhook reads the events that an API sends, and passes those that prove the effect of an operation to a client. It decides which
// event proves something about which record, by the facts of a profile (profile.Webhook); package acts decides the rest.
package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/eventsign"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Client is the part of a client for events.
type Client interface {
	// Named returns the client's records of a key; of the empty key all of them.
	Named(ctx context.Context, key string) iter.Seq2[persist.Record, error]
	// All returns the records of all accounts.
	All(ctx context.Context) iter.Seq2[persist.Record, error]
	// Has reports whether a record is of the client's accounts.
	Has(ctx context.Context, rec *persist.Record) bool
	// ErasedKey returns the text in the place of a key on the wire in an erased record.
	ErasedKey(ctx context.Context, key string) (string, error)
	// Testify stores evidence for a record, durably. created is the event's own time; zero: it has none.
	Testify(ctx context.Context, rec persist.Record, evidence persist.Evidence, created time.Time) (acts.Testimony, error)
	// Unproved tells of an event without an effect.
	Unproved(ctx context.Context, why error)
}

// Config has the fields of oncehttp.WebhookConfig, documented there.
type Config struct {
	Client     Client
	Profile    *profile.Profile
	Secrets    [][]byte
	URL        string
	Tolerance  time.Duration
	Test       bool
	Account    string
	Origins    []string
	References []profile.EventField
	BasePath   string
	MaxBytes   int64
	ReadTime   time.Duration
}

const (
	defaultBytes    = 1 << 20
	bytesMax        = 16 << 20
	defaultReadTime = 10 * time.Second
	readTimeMax     = time.Minute
)

// Handler serves the events of one API.
type Handler struct {
	Config
	scheme eventsign.Scheme
	verify eventsign.Verify
}

// New returns a handler of the events of the profile's API. An error names the wrong field of the Config. What c points to is copied: later changes do not
// count.
func New(c Config) (*Handler, error) {
	c.MaxBytes, c.ReadTime = cmp.Or(c.MaxBytes, defaultBytes), cmp.Or(c.ReadTime, defaultReadTime)
	c.Profile, c.References, c.Origins = c.Profile.Clone(), slices.Clone(c.References), slices.Clone(c.Origins)
	if err := c.check(); err != nil {
		return nil, err
	}
	scheme, known := eventsign.Of(c.Profile.Webhook.Scheme)
	if !known {
		return nil, fmt.Errorf("the scheme %q of signatures is not known", c.Profile.Webhook.Scheme)
	}
	verify, err := scheme.Verifier(eventsign.Check{Secrets: c.Secrets, URL: c.URL, Tolerance: c.Tolerance})
	if err != nil {
		return nil, err
	}
	c.Secrets = nil // verify has them
	return &Handler{c, scheme, verify}, nil
}

// check returns an error that says which field of the Config is wrong, and why.
func (c *Config) check() error {
	switch {
	case c.Profile == nil:
		return errors.New("want a Profile whose events prove something")
	case c.Profile.Webhook == nil:
		return fmt.Errorf("of the profile %q no event is known to prove anything", c.Profile.Name)
	case c.Account != "" && c.Profile.Webhook.Merchant == "":
		return fmt.Errorf("an Account, and the events of %q name no merchant of an application; leave it empty", c.Profile.Name)
	case c.Account == "" && c.Profile.Webhook.Merchant != "" && !c.Profile.Webhook.MerchantOptional:
		return fmt.Errorf("want Account: the merchant whose events the handler takes, as at %s of each event", c.Profile.Webhook.Merchant)
	case len(c.Secrets) == 0:
		return errors.New("want Secrets: the secret of the API's events")
	case c.MaxBytes < 0 || c.MaxBytes > bytesMax:
		return fmt.Errorf("a MaxBytes of %d, want at most %d", c.MaxBytes, bytesMax)
	case c.ReadTime < 0 || c.ReadTime > readTimeMax:
		return fmt.Errorf("a ReadTimeout of %v, want at most %v", c.ReadTime, readTimeMax)
	}
	for _, r := range c.References {
		if jsonpointer.Check(r.Event) != nil || jsonpointer.Check(r.Request) != nil {
			return fmt.Errorf("the References %q and %q, want two JSON pointers", r.Event, r.Request)
		}
	}
	if err := c.Profile.Check(); err != nil {
		return fmt.Errorf("the profile: %w", err)
	}
	return nil
}

// ServeHTTP answers 200 once all events of the body are durable, or prove nothing; 400 for a bad signature; 405, 408 and 413 for another
// method, a slow body and a large one; 503 if the journal fails: then the API sends them again.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want a POST", http.StatusMethodNotAllowed)
		return
	}
	body, status := h.body(w, req)
	if status != 0 {
		http.Error(w, http.StatusText(status), status)
		return
	}
	status = h.take(req.Context(), req.Header, body)
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
	}
}

// body reads the raw body of a request, within its bounds of size and time. The signature is over these bytes, so nothing decodes them. A status
// other than zero is the answer to give.
func (h *Handler) body(w http.ResponseWriter, req *http.Request) (body []byte, status int) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.ReadTime)) // a server that cannot do so has a limit of its own
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, h.MaxBytes))
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return body, 0
}

// take verifies the signature of a body, uses its events, and returns the status of the answer: 400 without a valid signature, 503 if the journal
// fails and the API should send it again, else 200. An event without any proof gets a 200, too, since sending it again would change nothing.
func (h *Handler) take(ctx context.Context, header http.Header, body []byte) int {
	if h.scheme.Fields == nil { // the signature is over the whole body, and not over fields of an event
		if err := h.verify(header, body, nil); err != nil {
			h.Client.Unproved(ctx, err)
			return http.StatusBadRequest
		}
	}
	document, err := decode(body)
	var all []event
	if err == nil {
		all, err = events(h.Profile.Webhook, document)
	}
	if err != nil {
		h.Client.Unproved(ctx, err)
		if h.scheme.Fields != nil { // its signatures cannot be found
			return http.StatusBadRequest
		}
		return http.StatusOK
	}
	for i := range all {
		if err := h.verifyFields(header, body, &all[i]); err != nil {
			h.Client.Unproved(ctx, err)
			return http.StatusBadRequest
		}
	}
	digest := sha256.Sum256(body)
	for i := range all {
		if err := h.use(ctx, &all[i], string(digest[:])); err != nil {
			h.Client.Unproved(ctx, err)
			if !isUnproving(err) {
				return http.StatusServiceUnavailable
			}
		}
	}
	return http.StatusOK
}

// verifyFields verifies the signature of one event, under a scheme with signatures of single fields instead of the body. Colons separate the signed
// fields: of an event with a colon within one of them no field counts as signed.
func (h *Handler) verifyFields(header http.Header, body []byte, e *event) error {
	if h.scheme.Fields == nil {
		return nil
	}
	e.signed = h.scheme.Fields
	for _, pointer := range h.scheme.Fields {
		if text, _ := e.raw(pointer); strings.Contains(text, ":") {
			e.signed = []string{}
		}
	}
	return h.verify(header, body, e.raw)
}

// use records the proof of one event on its operation. An error is the journal's, or the reason why the event proves nothing. digest is that of the
// body.
func (h *Handler) use(ctx context.Context, e *event, digest string) error {
	p, err := h.proof(e)
	if err != nil {
		return err
	}
	rec, by, err := h.find(ctx, e, p)
	if err != nil {
		return err
	}
	if err := h.agrees(e, p, &rec); err != nil {
		return err
	}
	created, _ := e.created(h.Profile.Webhook)
	said, err := h.Client.Testify(ctx, rec, persist.Evidence{
		Event: clipped(e.text(h.Profile.Webhook.ID)), Type: clipped(p.Type), By: clipped(by), Scheme: h.scheme.Name, Digest: digest,
	}, created)
	if err == nil && said == acts.TestifiesNothing { // it was not sent before the event
		return errUnsent
	}
	return err
}

// clipped cuts a text to the bound of a record, and makes it valid UTF-8.
func clipped(text string) string {
	if len(text) > persist.EvidenceTextMax {
		text = text[:persist.EvidenceTextMax]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	return strings.ToValidUTF8(text, "")
}
