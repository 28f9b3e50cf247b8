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
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// Key names one operation, for ever. "" is never valid: every call refuses it.
//
// A key that says what business it belongs to (a [Scope]'s) protects an order,
// however often and from wherever it is tried; a [RandomKey] protects only the
// one call that made it and its Resume.
type Key string

// RandomKey is a version 4 UUID in its text form, 122 bits of randomness. It
// protects the one call that it is made for, and its Resume; nothing above it.
func RandomKey() Key { return Key(uuid.NewString()) }

// Scope is the business that keys belong to, such as "order" or "user:update".
// It is a value: copy and share it freely. The zero Scope makes only empty keys.
type Scope struct {
	text   string // the first word, then each part behind a colon
	broken bool   // some part was empty
}

// NewScope makes the scope of these parts, with the first word "idemp". With an
// empty part, or none, it makes only empty keys, which every call refuses.
func NewScope(parts ...string) Scope {
	return Scope{text: "idemp", broken: len(parts) == 0}.with(parts)
}

// Prefix is the same scope under another first word than "idemp", such as the
// name of the application.
func (s Scope) Prefix(p string) Scope {
	_, parts, _ := strings.Cut(s.text, ":")
	return Scope{text: escapePart(p) + ":" + parts, broken: s.broken || s.text == "" || p == ""}
}

func (s Scope) with(parts []string) Scope {
	for _, p := range parts {
		s.broken = s.broken || p == ""
		s.text += ":" + escapePart(p)
	}
	return s
}

// Key is the scope's key for these parts: "idemp:order:uid123:order456". Every
// part is percent-encoded outside A-Za-z0-9._~-, so that no two lists of parts
// give one key. The list is that of the scope with that of the key behind it:
// where one ends and the other begins does not show, so that
// NewScope("user", "update").Key("1") is NewScope("user").Key("update", "1").
// Scopes whose keys must never meet differ in their first part.
//
// An empty part is the sign of a missing id, which would merge strangers: it
// gives "", as does an empty list. Numbers go through strconv.
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

func reserved(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
		r == '.', r == '_', r == '~', r == '-':
		return false
	}
	return true
}

// TimeBucket names the stretch of time that t, the time of the event, falls into:
// a day ("20240330"), an hour ("20240330T10") or a minute ("20240330T1004"), in
// UTC. d is one of 24*time.Hour, time.Hour and time.Minute; any other gives "",
// and so an empty key, as does a zero t.
func TimeBucket(t time.Time, d time.Duration) string {
	layouts := map[time.Duration]string{24 * time.Hour: "20060102", time.Hour: "20060102T15", time.Minute: "20060102T1504"}
	if t.IsZero() || layouts[d] == "" {
		return ""
	}
	return t.UTC().Format(layouts[d])
}

// Generation is the key of the n-th new try after a final refusal, spelled out
// ("idemp:order:o1:gen=2"). Generations below 2 are the key itself: the first
// try is generation 1. No Scope makes such a key by itself ('=' is encoded).
func (k Key) Generation(n int) Key {
	if k == "" || n < 2 {
		return k
	}
	return k + Key(":gen="+strconv.Itoa(n))
}

// nextGeneration returns the key of the try after k.
func nextGeneration(k Key) Key {
	const mark = ":gen="
	if at := strings.LastIndex(string(k), mark); at > 0 {
		if n, err := strconv.Atoi(string(k[at+len(mark):])); err == nil && n >= 2 && k == k[:at].Generation(n) {
			return k[:at].Generation(n + 1)
		}
	}
	return k.Generation(2)
}

// Derive is the key of a step that this operation causes, such as the next hop:
// the same key and step give the same child, and no two pairs give one. An empty
// step gives "".
func (k Key) Derive(step string) Key {
	if k == "" || step == "" {
		return ""
	}
	return k + ":step=" + Key(escapePart(step))
}

// Opaque is a key that tells nothing: HMAC-SHA256 of k under secret, 43
// characters of base64url. Deterministic, unguessable without the secret, and
// free of personal data. An empty secret gives "".
func (k Key) Opaque(secret []byte) Key {
	if k == "" || len(secret) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(k))
	return Key(base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
}

// UUID is a version 5 UUID (RFC 9562 section 5.5) of k, for APIs that take
// nothing else. It is deterministic, and no secret: who knows k can make it.
// An API that insists on version 4 does not take it: see UUIDv4.
func (k Key) UUID() Key {
	if k == "" {
		return ""
	}
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/oncehttp/oncehttp"))
	return Key(uuid.NewSHA1(space, []byte(k)).String())
}

// UUIDv4 is a UUID in the shape of version 4 (RFC 9562 section 5.4), made of k, for APIs that check the version. It is not
// random, in spite of its version: it is deterministic, and no secret. A [RandomKey] that is kept with the order is the honest
// choice where something can be kept. Its recipe is version 1, and stays: the first 128 bits of the SHA-256 of
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

// Short is a key of n characters out of a-z and 2-7, made of k, for APIs that take no longer one. It is deterministic, and no secret.
// Each character has 5 bits. Fewer than 16, 80 bits, would let strangers meet: n below 16 gives "", which every call refuses. n above
// 52 gives 52 characters. The API knows the operation by these characters alone: choose n once, and keep to it. Its recipe is version 1, and
// stays: the base32 (RFC 4648 section 6), in lower case, of the SHA-256 of "oncehttp key short 1\n" and k.
func (k Key) Short(n int) Key {
	if k == "" || n < shortMin {
		return ""
	}
	sum := sha256.Sum256([]byte("oncehttp key short 1\n" + string(k)))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return Key(strings.ToLower(text[:min(n, shortMax)]))
}

// KeyFromJSON returns a [Config].NewKey that makes the key of what the request's JSON body says: the scope's key for the
// values at these JSON pointers (RFC 6901), such as "/order/id". The same business gives the same key in every process, so
// that its record is kept like that of a key which the caller chose. New refuses an empty scope and what is no pointer.
// Where the same request is unresolved under a generated key, from before KeyFromJSON was used, it is refused as without it (Client.Do).
//
// Each pointer must lead to a string that is not empty, to a number or to a boolean. A number counts as it is spelled: 1
// and 1.0 give two keys; 1 and "1" give one. The body is read through the request's GetBody, which http.NewRequest sets for a bytes.Buffer, a
// bytes.Reader and a strings.Reader. Without GetBody, with a body that is not JSON, or with a value missing or there twice, the error of
// the call is ErrKeyInvalid and nothing is sent. Where the body could not be read, or has a value twice, it is ErrOutcomeUnknown, too: an
// operation may stand under the key. The function is safe for concurrent use.
func KeyFromJSON(scope Scope, pointers ...string) func(*http.Request) (Key, error) {
	return (&jsonKey{scope, slices.Clone(pointers)}).make
}

// jsonKey makes keys of values in JSON bodies.
type jsonKey struct {
	scope    Scope
	pointers []string
}

// isJSONKey reports whether a NewKey is one of KeyFromJSON: its code is that of jsonKey.make. Functions have no other
// identity, and New may not call one of the user's.
func isJSONKey(newKey func(*http.Request) (Key, error)) bool {
	return reflect.ValueOf(newKey).Pointer() == reflect.ValueOf((*jsonKey)(nil).make).Pointer()
}

// make returns the key of a request. Of nil it only says what is wrong with the scope and the pointers.
func (k *jsonKey) make(req *http.Request) (Key, error) {
	if err := k.check(); err != nil || req == nil {
		return "", err
	}
	made, asked := req.Context().Value(madeKeyName{}).(*madeKey)
	body, err := bodyAgain(req)
	if err != nil {
		if asked {
			made.unread = true
		}
		return "", err
	}
	if !json.Valid(body) {
		return "", errors.New("the body is not JSON")
	}
	parts := make([]string, len(k.pointers))
	for i, pointer := range k.pointers {
		texts := jsonpointer.Texts(body, pointer)
		if len(texts) > 1 {
			if asked {
				made.unread = true
			}
			return "", fmt.Errorf("the body has %d values at %s; want one", len(texts), pointer)
		}
		if len(texts) == 0 || texts[0] == "" {
			return "", fmt.Errorf("the body has no value at %s that a key could be made of", pointer)
		}
		parts[i] = texts[0]
	}
	if asked {
		made.business = true
	}
	return k.scope.Key(parts...), nil
}

// check refuses a scope and pointers that make no key, or one that does not say as much as it seems.
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

// bodyAgain reads a request's JSON body through GetBody, so that Body stays unread.
func bodyAgain(req *http.Request) ([]byte, error) {
	if req.GetBody == nil {
		return nil, errors.New("the request has no GetBody, through which its body could be read twice")
	}
	r, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("from GetBody: %w", err)
	}
	defer r.Close()
	return io.ReadAll(r) // of a client: bounded by MaxRequestBytes, and by the context
}

// madeKey is what a NewKey says of the key that it returned, through the context of the request that it got.
type madeKey struct {
	business bool // the same request always gets this key
	unread   bool // the body that names the key could not be read
}

type madeKeyName struct{}

// ContextWithKey names the one request that is made with the context. A key in
// the request itself must be the same. The contexts that functions of the Config, the Transport and the journal get do not have it, since
// what they ask for is another request. It panics if ctx is nil, as context.WithValue does.
func ContextWithKey(ctx context.Context, key Key) context.Context {
	return context.WithValue(ctx, inflight.RequestKey{}, key)
}
