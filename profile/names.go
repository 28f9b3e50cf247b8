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

// data holds this package's profiles, each in a file with the profile's name.
//
//go:embed data/*.json
var data embed.FS

// defaultName is the name of Draft07, the profile for an unknown API.
const defaultName = "draft-07"

// quotedName is the name of Draft07Quoted.
const quotedName = "draft-07-quoted"

// Draft07 is draft-ietf-httpapi-idempotency-key-header-07, which expired on 18
// April 2026 and is no RFC, with raw keys as the APIs in the field take them
// (the draft asks for a quoted string: [Draft07Quoted]). It is the default for an
// unknown API, and cautious: its window is a cap of 24 hours without any server's
// promise, and it takes no error for a stored one without a mark of a replay (see
// [Profile.KeptErrors]).
func Draft07() *Profile { return embedded(defaultName) }

// StripeV1 is Stripe's v1 API. It keeps a 500 under the key and gives it again,
// so that a repeat cannot help and a new key may charge twice: such an operation
// is held, to be settled by looking. Stripe's v2 API differs under the same
// header name: profile "stripe-v2".
func StripeV1() *Profile { return embedded("stripe") }

// GoCardless is the GoCardless Pro API. A repeat is answered 409 with the id of
// the first request's resource: already done, which is a success; a GET finds
// the resource. The time for which it knows a key is not published.
func GoCardless() *Profile { return embedded("gocardless") }

// None is for an API with neither keys nor a reference that it checks. No key is sent. An operation is sent again only if
// nothing of it was sent; one with an unknown outcome is held until a person settles it.
func None() *Profile { return embedded("none") }

// known caches the profiles of ByName, by name: reading them took a fourth of the time of programs with many clients, such as
// tests. A cached *Profile is never changed or handed out.
var known sync.Map

// ByName returns a new copy of this package's profile of that name; false: there is none. A name with a separator would leave the directory of profiles.
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
	return p.Clone(), true // the cached one stays private
}

// embedded returns the profile of this name, which must be one that is built in.
func embedded(name string) *Profile {
	p, _ := ByName(name)
	return p
}

// Names returns the names for ByName: Draft07 first, the others in alphabetical order.
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

// Draft07Quoted is Draft07 with the key in the draft's own spelling: a
// structured-field String, in quotes. A server that reads the field strictly
// ignores a raw key, and does not protect the operation.
func Draft07Quoted() *Profile { return embedded(quotedName) }
