package sign

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
)

// signatureBase returns the signed text (RFC 9421 section 2.5): a line for each covered component of input, and one for its
// parameters. An error: the request lacks a component, or input has one that this package does not support, twice, or with
// a line feed or a character outside ASCII in its value.
func signatureBase(req *http.Request, input httpsfv.InnerList) (string, error) {
	var b strings.Builder
	var names []string
	for _, item := range input.Items {
		name, isText := item.Value.(string)
		if !isText || item.Params != nil && len(item.Params.Names()) > 0 {
			return "", fmt.Errorf("the component %.60v has parameters or is no string, which this package does not take", item.Value)
		}
		if slices.Contains(names, name) {
			return "", fmt.Errorf("the component %.60s is covered twice", name)
		}
		names = append(names, name)
		value, err := component(req, name)
		if err != nil {
			return "", err
		}
		b.WriteString(`"` + name + `": ` + value + "\n")
	}
	params, err := httpsfv.Marshal(input)
	if err != nil {
		return "", errors.New("its parameters cannot be spelled")
	}
	b.WriteString(`"@signature-params": ` + params)
	base := b.String()
	if strings.ContainsFunc(base, func(r rune) bool { return r >= 0x80 }) || strings.Count(base, "\n") != len(names) {
		return "", errors.New("a covered component holds a line feed, or a character that is not ASCII")
	}
	return base, nil
}

// component returns the value of a derived component (RFC 9421 section 2.2) or of a header (section 2.1), whose lines are
// joined by commas. An unknown name, and a header that the request lacks, are errors.
func component(req *http.Request, name string) (string, error) {
	if err := knownComponent(name); err != nil {
		return "", err
	}
	switch name {
	case "@method":
		return req.Method, nil
	case "@target-uri":
		return scheme(req) + "://" + authority(req) + target(req), nil
	case "@authority":
		return authority(req), nil
	case "@scheme":
		return scheme(req), nil
	case "@request-target":
		return target(req), nil
	case "@path":
		return path(req), nil
	case "@query":
		return "?" + req.URL.RawQuery, nil // also of an empty query, as the RFC says
	}
	lines := req.Header.Values(name)
	if name == "content-length" && len(lines) == 0 && req.ContentLength >= 0 {
		lines = []string{strconv.FormatInt(req.ContentLength, 10)} // net/http's client writes the header from it
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("the request has no header %s, which the signature has to cover", name)
	}
	values := make([]string, len(lines))
	for i, line := range lines {
		values[i] = strings.Trim(line, " \t")
	}
	return strings.Join(values, ", "), nil
}

// knownComponent returns an error unless a name can be a covered component of a signature (RFC 9421): a derived one of this package, or the name of a
// header in lower case.
func knownComponent(name string) error {
	derived := []string{"@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query"}
	switch {
	case slices.Contains(derived, name):
		return nil
	case strings.HasPrefix(name, "@"):
		return fmt.Errorf("the component %.60s is none of %s", name, strings.Join(derived, ", "))
	case !usableName(name) || name != strings.ToLower(name):
		return errors.New("a component is no name of a header in lower case")
	case name == "host":
		return errors.New("the component host is not taken; @authority says the same")
	}
	return nil
}

// contentDigest returns the value of Content-Digest for a body (RFC 9530 section 2), with SHA-256.
func contentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	text, _ := field("sha-256", httpsfv.NewItem(sum[:])) // a digest can always be spelled
	return text
}

// checkDigest compares the lines of Content-Digest with a body. SHA-256 or SHA-512 is required, and each of them present must
// match. Other algorithms are ignored; RFC 9530 section 5 calls them insecure.
func checkDigest(lines []string, body []byte) error {
	digests, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return errors.New("the header Content-Digest cannot be read")
	}
	sum256, sum512 := sha256.Sum256(body), sha512.Sum512(body)
	checked := false
	for name, want := range map[string][]byte{"sha-256": sum256[:], "sha-512": sum512[:]} {
		member, there := digests.Get(name)
		if !there {
			continue
		}
		item, _ := member.(httpsfv.Item)
		got, _ := item.Value.([]byte)
		if subtle.ConstantTimeCompare(got, want) != 1 {
			return errors.New("the header Content-Digest is not that of the body")
		}
		checked = true
	}
	if !checked {
		return errors.New("the header Content-Digest has neither sha-256 nor sha-512")
	}
	return nil
}
