package persist

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Format is the version of the encoding in which this version of the module writes records.
const Format = 1

// NeedsBytesMax bounds the text of a record's Needs, in bytes.
const NeedsBytesMax = 640

// Needs are the requirements on a client acting on a record: to claim, send, look up or rekey it. Everything else in a record
// tells how to act, and not who may. Needs are frozen by Begin but for the keys of a seal: each write renews these. Two
// Needs are comparable with ==, and equal if their texts are.
//
// A long value stands as a digest: compare with IsCredential, IsRegion and IsProfile.
type Needs struct {
	Format     int    // the encoding of the record; 0 if the text is of a later version, too
	SealKeys   string // ids of the keys used to seal it, with '+' between them; empty: none
	Hidden     string // the rest, as package persist/seal keeps it; the fields below are zero then
	Plain      bool   // it is not sealed, in a journal opened with keys
	Authorize  bool   // credentials kept by no journal
	Credential string // of Record.Credential; empty: any
	Region     string // of Record.Region; empty: any
	Profile    string // of Record.Profile
	Version    string // of Record.ProfileVersion
}

// Needs returns the requirements on a client acting on the record, such as the credential, the region and the profile that it must have. Those of a sealed
// (encrypted) record are read from SealedNeeds, a text that package persist/seal writes beside the encrypted parts. Without this text only the key of the
// seal is known: Hidden is "?".
func (r *Record) Needs() Needs {
	if r.Carrier == CarrierSealed {
		if r.SealedNeeds == "" {
			return Needs{Format: Format, SealKeys: r.CarrierName, Hidden: "?"}
		}
		return ParseNeeds(r.SealedNeeds)
	}
	return Needs{
		Format: Format, Authorize: len(r.Omitted) > 0, // a credential left out of the record
		Credential: needOf(r.Credential), Region: needOf(r.Region),
		Profile: needOf(r.Profile), Version: needOf(r.ProfileVersion),
	}
}

// needMost is how long a value may be in a text, once it is escaped.
const needMost = 48

// needOf returns a value in the form that Needs have it in: the value itself if it is short, else '~' and the first 8 bytes of its SHA-256 in
// hexadecimal digits. So the text of Needs is bounded. A short value that begins with '~' is digested, too, so that no value looks like a digest.
func needOf(value string) string {
	if len(value) <= needMost && !strings.HasPrefix(value, "~") && len(escapeNeed(value)) <= needMost {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "~" + hex.EncodeToString(sum[:8])
}

// escapeNeed encodes a value for the text of Needs, in which spaces, '=' and '@' separate parts.
func escapeNeed(value string) string { return url.QueryEscape(value) }

// IsCredential reports whether a client with this hash of its credential can finish an operation with these needs: they name this hash, or none.
func (n Needs) IsCredential(hash string) bool {
	return n.Credential == "" || n.Credential == needOf(hash)
}

// IsRegion reports whether a client of this region can finish an operation with these needs: they name this region, or none.
func (n Needs) IsRegion(region string) bool { return n.Region == "" || n.Region == needOf(region) }

// IsProfile reports whether n asks for the profile of this name and version. Needs without a profile fit only a profile without a name.
func (n Needs) IsProfile(name, version string) bool {
	return n.Profile == needOf(name) && n.Version == needOf(version)
}

// Lock returns Needs that show in clear only the format of n and sealKeys, the ids of the keys of the seal. hidden is the whole text of n, encrypted by
// package persist/seal: so nobody without the keys reads the needs of a sealed record.
func (n Needs) Lock(sealKeys, hidden string) Needs {
	return Needs{Format: n.Format, SealKeys: sealKeys, Hidden: hidden}
}

// The words of a text.
const (
	needSeal       = "seal="
	needHidden     = "hidden="
	needPlain      = "plain"
	needAuthorize  = "auth"
	needCredential = "credential="
	needRegion     = "region="
	needProfile    = "profile="
)

// String returns the one text of n: the format, then a word for each need, such as "1 auth region=eu profile=stripe@v1". It has
// NeedsBytesMax bytes at most, all of them visible characters or spaces.
func (n Needs) String() string {
	var b strings.Builder
	b.Grow(64)
	b.WriteString(strconv.Itoa(n.Format))
	word := func(on bool, name, value string) {
		if on {
			b.WriteString(" " + name + value)
		}
	}
	word(n.SealKeys != "", needSeal, n.SealKeys)
	word(n.Hidden != "", needHidden, n.Hidden)
	word(n.Plain, needPlain, "")
	word(n.Authorize, needAuthorize, "")
	word(n.Credential != "", needCredential, escapeNeed(n.Credential))
	word(n.Region != "", needRegion, escapeNeed(n.Region))
	if n.Profile != "" || n.Version != "" {
		word(true, needProfile, escapeNeed(n.Profile)+"@"+escapeNeed(n.Version))
	}
	return b.String()
}

// ParseNeeds returns the Needs of a text made by their String. For a text of another format it returns the format alone (0 if it has none), and for a text
// with an unknown or damaged word the zero value. Nobody can read the needs of such a record here, and so no client of this version acts on it.
func ParseNeeds(text string) Needs {
	first, rest, more := strings.Cut(text, " ")
	format, err := strconv.Atoi(first)
	if err != nil || format != Format {
		return Needs{Format: max(format, 0)}
	}
	n := Needs{Format: format}
	for _, word := range strings.Split(rest, " ") {
		if more { // without a space there is no word, but Split returns an empty one
			n.read(word)
		}
	}
	if n.String() != text {
		return Needs{}
	}
	return n
}

// read sets the field of n that a word such as "region=eu" names. An unknown or damaged word sets nothing: ParseNeeds finds then that the text of n
// is another one.
func (n *Needs) read(word string) {
	name, value, _ := strings.Cut(word, "=")
	plain, err := url.QueryUnescape(value)
	if err != nil {
		return
	}
	switch name + "=" { // words without a value have no '=' in their constants
	case needSeal:
		n.SealKeys = value
	case needHidden:
		n.Hidden = value
	case needPlain + "=":
		n.Plain = true
	case needAuthorize + "=":
		n.Authorize = true
	case needCredential:
		n.Credential = plain
	case needRegion:
		n.Region = plain
	case needProfile:
		profile, version, _ := strings.Cut(value, "@")
		n.Profile, _ = url.QueryUnescape(profile)
		n.Version, _ = url.QueryUnescape(version)
	}
}

// SealKeyIDs returns the ids of the keys by which a record is sealed (encrypted); nil if it is not.
func (n Needs) SealKeyIDs() []string {
	if n.SealKeys == "" {
		return nil
	}
	return slices.Collect(strings.SplitSeq(n.SealKeys, "+"))
}

// UnreadError is an error about one record. The record is intact and cannot be read here: ErrSealed or ErrNewer. The error has
// the fields in clear. List yields it and goes on.
type UnreadError struct {
	// Record has the fields in clear: its ID, State, Seq, Revision, Created, Origin and times at least, and Needs gives its needs.
	// It must not be written back, but by a Finish if it is sealed.
	Record Record
	Needs  string // the text of the needs, as DueTimes returns it
	Err    error  // the reason
}

// Error returns the text of the reason, or a general one without a reason.
func (e *UnreadError) Error() string {
	if e.Err == nil {
		return "persist: a record cannot be read here"
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *UnreadError) Unwrap() error { return e.Err }

// MatchUnread reports whether q selects a record that cannot be read here, by its fields in clear (e.Record has these alone). Its needs (the requirements on a
// client) are compared as texts, since those of a later version cannot be parsed.
func (q *Query) MatchUnread(e *UnreadError) bool {
	rest := *q
	rest.Needs = ""
	return rest.Match(&e.Record) && (q.Needs == "" || q.Needs == e.Needs)
}

// OfOneRecord reports whether an error of List is about one record: ErrCorrupt, ErrSealed or ErrNewer. The listing goes on behind this record. (ErrSealed
// matches ErrCorrupt.)
func OfOneRecord(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewer) }

// Sealed returns nil for a record that is not sealed. For a sealed record (encrypted by package persist/seal, and read without its keys) it returns
// an error that matches ErrSealed and names the key.
func (r *Record) Sealed() error {
	if r.Carrier != CarrierSealed {
		return nil
	}
	return fmt.Errorf("%w: %q is sealed with the key %q, and the journal was opened without keys; open it with them (package persist/seal)",
		ErrSealed, r.Key, r.CarrierName)
}
