package oncehttp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/run"
)

// Key is the name of one operation. Every call refuses "".
//
// A key of the business (from a [Scope]) protects an order, however often and wherever it is
// tried. A [RandomKey] protects the one call that made it, and its Resume.
type Key string

// RandomKey returns a version 4 UUID in its text form, with 122 bits of randomness. It
// protects the one call that it is made for, and its Resume; it does not protect a second
// call of the program.
func RandomKey() Key { return Key(uuid.NewString()) }

// Scope is the part of the business that keys belong to, such as "order" or "user:update".
// It is a value, and safe for concurrent use. The zero Scope makes only empty keys.
type Scope struct {
	text   string // the first word, then each part behind a colon
	broken bool   // some part was empty
}

// NewScope returns the scope of these parts, with the first word "idemp". With an empty part,
// or none, it makes only empty keys, and every call refuses those.
func NewScope(parts ...string) Scope {
	return Scope{text: "idemp", broken: len(parts) == 0}.with(parts)
}

// Prefix returns the scope with another first word than "idemp", such as the name of the
// application.
func (s Scope) Prefix(p string) Scope {
	_, parts, _ := strings.Cut(s.text, ":")
	return Scope{text: escapePart(p) + ":" + parts, broken: s.broken || s.text == "" || p == ""}
}

// with returns the scope with more parts. An empty part breaks it: its keys are then "".
func (s Scope) with(parts []string) Scope {
	for _, p := range parts {
		s.broken = s.broken || p == ""
		s.text += ":" + escapePart(p)
	}
	return s
}

// Key returns the scope's key for these parts: "idemp:order:uid123:order456". Bytes outside
// A-Za-z0-9._~- are percent-encoded in every part, so that no two lists of parts have the same
// key. The list is the scope's parts with the key's behind them: their border does not show,
// and NewScope("user", "update").Key("1") is NewScope("user").Key("update", "1"). Scopes with
// keys that must never meet differ in their first part.
//
// An empty part means a missing id, and would merge strangers: the key is "", as it is for an
// empty list. Format numbers with strconv.
func (s Scope) Key(parts ...string) Key {
	k := s.with(parts)
	if k.broken || s.text == "" || len(parts) == 0 {
		return ""
	}
	return Key(k.text)
}

// escapePart percent-encodes all bytes outside A-Za-z0-9._~-, the unreserved
// characters of RFC 3986 section 2.3.
func escapePart(s string) string {
	if !strings.ContainsFunc(s, reserved) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; reserved(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// reserved reports whether a character in a part must be encoded.
func reserved(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
		r == '.', r == '_', r == '~', r == '-':
		return false
	}
	return true
}

// TimeBucket returns the period of t, the time of the event: a day ("20240330"), an hour
// ("20240330T10") or a minute ("20240330T1004"), in UTC. d is 24*time.Hour, time.Hour or
// time.Minute. For any other d, and for a zero t, it returns "", and so the key is empty.
// For a schedule in local time use its own date: two local midnights can be one day in UTC.
func TimeBucket(t time.Time, d time.Duration) string {
	layouts := map[time.Duration]string{24 * time.Hour: "20060102", time.Hour: "20060102T15", time.Minute: "20060102T1504"}
	if t.IsZero() || layouts[d] == "" {
		return ""
	}
	return t.UTC().Format(layouts[d])
}

// Generation returns the key of the n-th try after a final refusal, spelled out
// ("idemp:order:o1:gen=2"). While an earlier one has not ended, a call with it is
// ErrKeyReused; 64 generations back are looked at, and beside more than 64 records of one
// intent nothing is begun. Nor is one begun after an earlier one that took effect, unless
// the verdicts of the profile now read that answer as a decline. After an abandoned one, a call
// with it is not refused, and may take effect once more. Look at Error.Effect or Result.Effect
// first. A key made of a generation, such as k.Generation(2).UUID(), is no generation to the
// journal: it refuses none of these, and Redrive does not make them. The first try is
// generation 1: below 2 the key is k. No Scope makes such a key by itself ('=' is encoded).
func (k Key) Generation(n int) Key { return Key(intent.Generation(string(k), n)) }

// FirstGeneration returns the key of the first try, and the number of this one: k and 1 for a key
// that Generation or [Client.Redrive] has not made. A row that follows the results of an intent is
// found by the key of the first try, see [Config.OnResult].
func (k Key) FirstGeneration() (first Key, n int) {
	text, n := intent.Generations(string(k))
	return Key(text), n
}

// Derive returns the key of a step caused by this operation, such as the next hop. The same
// key and step have the same child, and no two pairs share one. An empty step returns "".
func (k Key) Derive(step string) Key {
	if k == "" || step == "" {
		return ""
	}
	return k + ":step=" + Key(escapePart(step))
}

// Opaque returns a key without a meaning: HMAC-SHA256 of k under secret, in 43 characters of
// base64url. It is deterministic, cannot be guessed without the secret, and contains no
// personal data. An empty secret returns "".
func (k Key) Opaque(secret []byte) Key {
	if k == "" || len(secret) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(k))
	return Key(base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
}

// UUID returns a version 5 UUID (RFC 9562 section 5.5) of k, for APIs that accept only UUIDs.
// It is deterministic, and not secret. For APIs that require version 4 see UUIDv4.
func (k Key) UUID() Key {
	if k == "" {
		return ""
	}
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/oncehttp/oncehttp"))
	return Key(uuid.NewSHA1(space, []byte(k)).String())
}

// UUIDv4 returns a UUID of k in the form of version 4 (RFC 9562 section 5.4), for APIs that
// check the version. In spite of its version it is not random: it is deterministic, and not
// secret. If the business can store a key with the order, a [RandomKey] is the honest choice.
// The recipe is version 1, and stays: the first 128 bits of the SHA-256 of
// "oncehttp key uuidv4 1\n" and k, with the bits of version and variant set.
func (k Key) UUIDv4() Key {
	if k == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("oncehttp key uuidv4 1\n" + string(k)))
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return Key(id.String())
}

// The bounds of Key.Short, in characters of 5 bits: 80 bits at least, and all of a SHA-256.
const (
	shortMin = 16
	shortMax = 52
)

// Short returns a key of n characters out of a-z and 2-7, made of k, for APIs with a limit. It
// is deterministic, and not secret. Each character has 5 bits. With fewer than 16 characters,
// 80 bits, strangers could meet: n below 16 returns "", and every call refuses that. n above
// 52 returns 52 characters. The API knows the operation by these characters alone: choose n
// once, and keep it. The recipe is version 1, and stays: the base32 (RFC 4648 section 6), in
// lower case, of the SHA-256 of "oncehttp key short 1\n" and k.
func (k Key) Short(n int) Key {
	if k == "" || n < shortMin {
		return ""
	}
	sum := sha256.Sum256([]byte("oncehttp key short 1\n" + string(k)))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return Key(strings.ToLower(text[:min(n, shortMax)]))
}

// KeyFromJSON returns a function for [Config].NewKey. It makes the key from the request's JSON
// body: the scope's key for the values at these JSON pointers (RFC 6901), such as
// "/order/id". The same business has the same key in every process, so that its record is kept
// like that of a caller's own key. New refuses an empty scope, and a malformed pointer. If the
// same request is unresolved under a generated key, begun before KeyFromJSON was used, it is
// refused as without a key (Client.Do).
//
// Each pointer must lead to a non-empty string, a number or a boolean. A number counts as it is
// spelled: 1 and 1.0 have two keys; 1 and "1" have one. The body is read through the request's
// GetBody, set by http.NewRequest for a bytes.Buffer, a bytes.Reader and a strings.Reader.
//
// The call's error is ErrKeyInvalid, and nothing is sent, without GetBody, for a body that is not
// JSON, and for a value that is missing or occurs twice. It is also
//   - ErrNoKey, so that the request passes through Transport, if there is no value at any
//     pointer, no body, or a Content-Type other than JSON with a body that is not JSON or has no
//     GetBody;
//   - ErrOutcomeUnknown if the body could not be read or has a value twice, since an operation
//     may have the key.
//
// The function is safe for concurrent use.
func KeyFromJSON(scope Scope, pointers ...string) func(*http.Request) (Key, error) {
	return (&jsonKey{scope, slices.Clone(pointers)}).make
}

// jsonKey makes keys of values in JSON bodies.
type jsonKey struct {
	scope    Scope
	pointers []string
}

// isJSONKey reports whether newKey comes from KeyFromJSON: its code is jsonKey.make. A function
// has no other identity, and New may not call a user's.
func isJSONKey(newKey func(*http.Request) (Key, error)) bool {
	return reflect.ValueOf(newKey).Pointer() == reflect.ValueOf((*jsonKey)(nil).make).Pointer()
}

// make returns the key of a request. For nil it only checks the scope and the pointers. For newKeyOf it notes in the request's
// context, as a madeKey, that the key comes from the business, or that the body could not be read (unread): the request may
// then be one that has a key.
func (k *jsonKey) make(req *http.Request) (Key, error) {
	if err := k.check(); err != nil || req == nil {
		return "", err
	}
	made, _ := req.Context().Value(madeKeyName{}).(*madeKey)
	if made == nil {
		made = &madeKey{}
	}
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	otherType := kind != "" && !request.IsJSON(kind)
	body, err := bodyAgain(req)
	switch {
	case err == nil:
	case otherType && errors.Is(err, errNoGetBody): // a stream of something else
		made.unread = true
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	default:
		made.unread = true
		return "", err
	}
	if !json.Valid(body) {
		if len(body) == 0 || otherType {
			return "", fmt.Errorf("%w: the body is not JSON", ErrNoKey)
		}
		return "", errors.New("the body is not JSON")
	}
	parts, err := k.parts(body, made)
	if err != nil {
		return "", err
	}
	made.business = true
	return k.scope.Key(parts...), nil
}

// parts returns the values of a body at the pointers. The error matches ErrNoKey if nothing is at any of them, so that the body
// names no business at all. A value that is missing beside others is another error.
func (k *jsonKey) parts(body []byte, made *madeKey) ([]string, error) {
	parts := make([]string, len(k.pointers))
	var missing []error
	for i, pointer := range k.pointers {
		switch texts := jsonpointer.Texts(body, pointer); {
		case len(texts) > 1:
			made.unread = true
			return nil, fmt.Errorf("the body has %d values at %s; want one", len(texts), pointer)
		case len(texts) == 0 || texts[0] == "":
			missing = append(missing, fmt.Errorf("the body has no value at %s that a key could be made of", pointer))
			if len(texts) > 0 {
				parts[i] = pointer // a value is there, though none for a key: so this is not ErrNoKey
			}
		default:
			parts[i] = texts[0]
		}
	}
	switch {
	case len(missing) == 0:
		return parts, nil
	case !slices.ContainsFunc(parts, func(part string) bool { return part != "" }):
		return nil, fmt.Errorf("%w: %w", ErrNoKey, missing[0])
	}
	return nil, missing[0]
}

// check refuses a scope and pointers that cannot make a complete key.
func (k *jsonKey) check() error {
	if len(k.pointers) == 0 {
		return errors.New("KeyFromJSON: want a JSON pointer to each value that names the business, such as /order/id")
	}
	for i, pointer := range k.pointers {
		if err := jsonpointer.Check(pointer); err != nil {
			return fmt.Errorf("KeyFromJSON: %w", err)
		}
		if slices.Contains(k.pointers[:i], pointer) {
			return fmt.Errorf("KeyFromJSON: %s is there twice", pointer)
		}
	}
	if k.scope.Key("x") == "" {
		return errors.New("KeyFromJSON: the scope is empty, or a part of it is; want one such as NewScope(\"order\")")
	}
	return nil
}

var errNoGetBody = errors.New("the request has no GetBody, through which its body could be read twice")

// bodyAgain reads a request's JSON body through GetBody, so that Body stays unread.
func bodyAgain(req *http.Request) ([]byte, error) {
	if req.GetBody == nil {
		return nil, errNoGetBody
	}
	r, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("from GetBody: %w", err)
	}
	defer r.Close()
	return io.ReadAll(r) // of a client: bounded by MaxRequestBytes, and by the context
}

// madeKey describes the key returned by a NewKey, through the context of its request.
type madeKey struct {
	business bool // the same request always gets this key
	unread   bool // the body that names the key could not be read
}

type madeKeyName struct{}

// newKeyOf converts Config.NewKey for package run; nil stays nil. A function of KeyFromJSON tells more than the key: it fills the
// madeKey in the request's context.
func newKeyOf(f func(*http.Request) (Key, error)) func(*http.Request) (run.MadeKey, error) {
	if f == nil {
		return nil
	}
	return func(req *http.Request) (run.MadeKey, error) {
		var made madeKey
		if req != nil { // of nil KeyFromJSON says what is wrong with it
			req = req.WithContext(context.WithValue(req.Context(), madeKeyName{}, &made))
		}
		key, err := f(req)
		return run.MadeKey{Key: string(key), Business: made.business, Unread: made.unread}, err
	}
}

// ContextWithKey returns a context for one request under this key. A key in the request itself
// must be the same. The contexts of functions of the Config, the Transport and the journal do
// not have it: their requests are others. It panics if ctx is nil, as context.WithValue does.
func ContextWithKey(ctx context.Context, key Key) context.Context {
	return context.WithValue(ctx, inflight.RequestKey{}, string(key))
}
