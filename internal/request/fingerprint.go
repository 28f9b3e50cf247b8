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

// A recipe lists the parts of a fingerprint: a version, then the headers taking part. Credentials and trace context take no
// part.
//
// Behind the version stand the additions of the client's configuration to the rules for credentials, with colons between them.
// First come the query parameters added to the credentials; they were left out of the target. Then come the added headers. The
// names are in lower case and in order. The last addition is "kept" if the client keeps some headers with names of credentials.
// An example is "v1:pin,token:x-passcode:kept Content-Type". Empty additions at the end are left out. So a client with another
// configuration compares by the same rules, and keeps no more of an answer.
const (
	recipeV1   = "v1"
	recipeKept = "kept"
)

// recipe returns the recipe of new records: the text that tells which parts of a request make its fingerprint, by the profile and by the client's
// rules for credentials. It is a version, the client's additions to these rules behind a colon, and the headers that count, with blanks between. A header of
// trace context differs from call to call, and never counts.
func recipe(s *Secrets, p *profile.Profile) string {
	text := recipeV1
	if more := s.named(); more != "" {
		text += ":" + more
	}
	if !s.header("Content-Type") { // it counts unless the client takes it for a credential
		text += " Content-Type"
	}
	for _, name := range p.Fingerprint {
		if !s.header(name) && !isTrace(name) {
			text += " " + name
		}
	}
	return text
}

// rules are the contents of a recipe.
type rules struct {
	parameters []string // credentials beside those known to every client
	secret     []string // headers, likewise
	kept       bool     // the client keeps some of those known to every client
	headers    []string // those taking part
}

// parseRecipe returns the rules in a recipe: the headers that count, and the additions to the rules for credentials by the client that made it. known
// is false for a recipe of a later version. An example is "v1:pin,token:x-passcode:kept Content-Type": the version, the query parameters and the headers
// added to the credentials, the mark that some headers of that kind are kept, and behind a blank the headers that count.
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

// fingerprint returns the SHA-256 of the record's request, by the record's recipe. It covers origin, method, target, Host if it is not the origin's,
// the headers of the recipe, and the body. Each part but the last, the body, has its length before it, so different lists of parts have different sums. known
// is false for a recipe of a later version.
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

// Same reports whether rec is the same request as an existing record, standing. It compares their fingerprints (digests of the request), made by the
// existing record's recipe, the rule for fingerprints. It is for two records; Snapshot.Compare also compares values that a record leaves out.
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

// Intact reports whether a record still matches its fingerprint after it was read back, so that its request may be sent. A record that has ended, or that a person
// has reopened, and that has lost its request has nothing left to compare and is intact.
func Intact(rec *persist.Record) bool {
	sum, known := fingerprint(rec)
	return rec.Swept || rec.RequestDropped && (rec.State.Final() || rec.HoldReason == persist.HoldReopened) || known && bytes.Equal(sum, rec.Fingerprint)
}
