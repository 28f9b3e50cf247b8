package request

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// A recipe says what a fingerprint is made of: a version, then the headers that take part. A header that is a credential
// takes no part, nor does trace context. Behind the version stand, in lower case and in order, the query parameters that the client's configuration
// adds to the credentials, which were left out of the target; then the headers that it adds; then whether it keeps some that look like
// credentials: "v1:pin,token:x-passcode:kept Content-Type". What is empty at the end is left out. So a client with another
// configuration compares by the same rules, and keeps no more of an answer.
const (
	recipeV1   = "v1"
	recipeKept = "kept"
)

// recipe returns the recipe of new records under a profile.
func (r *Reader) recipe(p *profile.Profile) string {
	recipe := recipeV1
	if more := r.Secrets.named(); more != "" {
		recipe += ":" + more
	}
	if !r.Secrets.header("Content-Type") {
		recipe += " Content-Type"
	}
	for _, name := range p.Fingerprint {
		if !r.Secrets.header(name) && !isTrace(name) {
			recipe += " " + name
		}
	}
	return recipe
}

// rules are what a recipe says.
type rules struct {
	parameters []string // credentials beside those that every client knows
	secret     []string // headers, likewise
	kept       bool     // of those that every client knows, the client keeps some
	headers    []string // that take part
}

// parseRecipe takes a recipe apart. known is false for one of a later version.
func parseRecipe(recipe string) (r rules, known bool) {
	first, headers, _ := strings.Cut(recipe, " ")
	version, more, _ := strings.Cut(first, ":")
	if version != recipeV1 {
		return rules{}, false
	}
	r.headers = strings.Fields(headers)
	more, rest, _ := strings.Cut(more, ":")
	secret, kept, _ := strings.Cut(rest, ":")
	if r.kept = kept == recipeKept; kept != "" && !r.kept {
		return rules{}, false
	}
	if secret != "" {
		r.secret = strings.Split(secret, ",")
	}
	if more == "" {
		return r, true
	}
	for name := range strings.SplitSeq(more, ",") {
		plain, err := url.QueryUnescape(name)
		if err != nil {
			return rules{}, false
		}
		r.parameters = append(r.parameters, plain)
	}
	return r, true
}

// fingerprint is the SHA-256 of what the record's key names, by the record's recipe: origin, method, target, Host
// where it is not the origin's, the recipe's headers and the body, each with its length before it, so that no two
// lists hash alike. known is false for a recipe of a later version.
func fingerprint(rec *persist.Record) (sum []byte, known bool) {
	first, names, _ := strings.Cut(rec.Recipe, " ")
	if version, _, _ := strings.Cut(first, ":"); version != recipeV1 {
		return nil, false
	}
	head := make([]byte, 0, 512)
	for _, part := range []string{rec.Recipe, rec.Origin, rec.Method, rec.Target, strings.Join(rec.Header["Host"], ",")} {
		head = appendSized(head, part)
	}
	for name := ""; names != ""; {
		if name, names, _ = strings.Cut(names, " "); name != "" {
			head = appendSized(head, joinedLines(rec.Header, name))
		}
	}
	h := sha256.New()
	h.Write(head)
	h.Write(rec.Body)
	return h.Sum(nil), true
}

// appendSized appends a part behind its length.
func appendSized(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// Same reports whether rec names the request that an existing record names, by the existing record's recipe. It is
// for two records; Snapshot.Compare also compares with what the record leaves out.
func Same(rec, standing *persist.Record) bool {
	switch {
	case otherContent(rec, standing), otherScopes(rec, standing):
		return false
	case rec.Recipe == standing.Recipe:
		return bytes.Equal(rec.Fingerprint, standing.Fingerprint)
	}
	own := *rec
	own.Recipe = standing.Recipe
	sum, known := fingerprint(&own)
	return known && bytes.Equal(sum, standing.Fingerprint)
}

// Intact reports whether a record that was read back is still what was hashed. A swept record has nothing left to
// compare and is intact.
func Intact(rec *persist.Record) bool {
	sum, known := fingerprint(rec)
	return rec.Swept || known && bytes.Equal(sum, rec.Fingerprint)
}
