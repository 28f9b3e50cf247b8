package profile

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// data holds this package's profiles, a file each, named after the profile.
//
//go:embed data/*.json
var data embed.FS

// defaultName is the name of Draft07, the profile where nothing is known of an API.
const defaultName = "draft-07"

// Named reports whether the profile is that of an API, so that its facts are known of it: any but Draft07. A copy of Draft07
// with its keys in another header, which has a name such as draft-07@X-Key, is not.
func (p *Profile) Named() bool {
	name, _, _ := strings.Cut(p.Name, "@")
	return name != defaultName
}

// Draft07 is draft-ietf-httpapi-idempotency-key-header-07, which expired on 18
// April 2026 and is no RFC, with raw keys as the APIs in the field take them
// (the draft asks for a quoted string: [Draft07Quoted]). It is the default where
// nothing is known of an API, so it is cautious: the window is a cap of 24 hours
// that no server has promised.
func Draft07() *Profile { return embedded(defaultName) }

// StripeV1 is Stripe's v1 API. It keeps a 500 under the key and gives it again,
// so that a repeat cannot help and a new key may charge twice: such an operation
// is held, to be settled by looking. Stripe's v2 API differs under the same
// header name: profile "stripe-v2".
func StripeV1() *Profile { return embedded("stripe") }

// GoCardless is the GoCardless Pro API. A repeat is answered 409 with the id of
// what the first request made: already done, which is a success, and the
// resource itself is one GET away. How long it knows a key is not published.
func GoCardless() *Profile { return embedded("gocardless") }

// None is for an API that has neither a key nor a reference that it checks. No key is sent; an operation is sent again
// only if nothing of it was sent, and held where its outcome is not known: only somebody who looks can settle it.
func None() *Profile { return embedded("none") }

// known holds the profiles that ByName has read, by name. To read one anew took a fourth of the time of programs that make many clients,
// as tests do.
var known sync.Map

// ByName returns this package's profile of that name, a new copy each time.
func ByName(name string) (*Profile, bool) {
	if p, found := known.Load(name); found {
		return p.(*Profile).Clone(), true
	}
	text, err := data.ReadFile("data/" + name + ".json")
	if err != nil || strings.ContainsAny(name, `/\`) {
		return nil, false
	}
	p, err := Load(bytes.NewReader(text))
	if err != nil { // TestData loads every file
		panic(fmt.Sprintf("data/%s.json: %v", name, err))
	}
	known.Store(name, p)
	return p.Clone(), true // nobody else has the one that is kept
}

// embedded is ByName for a file that is there.
func embedded(name string) *Profile {
	p, _ := ByName(name)
	return p
}

// Names lists the names that ByName knows, the default first, the others in order.
func Names() []string {
	names := []string{defaultName}
	entries, _ := data.ReadDir("data") // it is embedded
	for _, e := range entries {
		if name := strings.TrimSuffix(path.Base(e.Name()), ".json"); name != defaultName {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names
}

// Draft07Quoted is Draft07 with the key as the draft itself asks for it: a
// structured-field String, in quotes. A server that reads the field strictly
// ignores a raw key, and then protects nothing.
func Draft07Quoted() *Profile { return embedded("draft-07-quoted") }
