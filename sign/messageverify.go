package sign

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/dunglas/httpsfv"
)

// parameters holds the parameters of a signature that a verifier uses.
type parameters struct {
	created, expires *int64 // in seconds since 1970; created is not nil, a nil expires means none
	nonce            string
	alg, keyid, tag  *string // nil: none
}

// check verifies the signature of an incoming request, without its freshness, and returns its parameters. The result is not
// to be used if the error is not nil.
func (m *Message) check(req *http.Request, body []byte) (*parameters, error) {
	input, signature, err := m.signatureOf(req)
	if err != nil {
		return nil, err
	}
	p, err := readParameters(input.Params)
	if err != nil {
		return nil, err
	}
	if err := m.agrees(p); err != nil {
		return nil, err
	}
	want, err := m.covered(req, len(body) > 0)
	if err != nil {
		return nil, err
	}
	for _, name := range want { // it may cover more
		if !slices.ContainsFunc(input.Items, func(i httpsfv.Item) bool { return i.Value == any(name) }) {
			return nil, fmt.Errorf("it does not cover %s", name)
		}
	}
	if slices.Contains(want, "content-digest") {
		if err := checkDigest(req.Header.Values("Content-Digest"), body); err != nil {
			return nil, err
		}
	}
	base, err := signatureBase(req, input)
	if err != nil {
		return nil, err
	}
	return p, m.Key.verify([]byte(base), signature)
}

// signatureOf returns the members with the Message's label in the headers Signature-Input and Signature. An error means that one is missing, or of a
// wrong type.
func (m *Message) signatureOf(req *http.Request) (input httpsfv.InnerList, signature []byte, err error) {
	inputs, err := httpsfv.UnmarshalDictionary(req.Header.Values("Signature-Input"))
	if err != nil {
		return input, nil, errors.New("the header Signature-Input cannot be read")
	}
	signatures, err := httpsfv.UnmarshalDictionary(req.Header.Values("Signature"))
	if err != nil {
		return input, nil, errors.New("the header Signature cannot be read")
	}
	member, _ := inputs.Get(m.Label)
	input, isList := member.(httpsfv.InnerList)
	member, _ = signatures.Get(m.Label)
	item, _ := member.(httpsfv.Item)
	signature, isBytes := item.Value.([]byte)
	if !isList || !isBytes {
		return input, nil, fmt.Errorf("there is none with the label %s", m.Label)
	}
	return input, signature, nil
}

// readParameters returns the parameters of a signature. The time of its creation and the nonce must be there.
func readParameters(params *httpsfv.Params) (*parameters, error) {
	var p parameters
	var nonce *string
	err := errors.Join(
		readParameter(params, "created", &p.created), readParameter(params, "expires", &p.expires), readParameter(params, "nonce", &nonce),
		readParameter(params, "alg", &p.alg), readParameter(params, "keyid", &p.keyid), readParameter(params, "tag", &p.tag),
	)
	switch {
	case err != nil:
		return nil, err
	case p.created == nil || nonce == nil || *nonce == "":
		return nil, errors.New("its parameter created or nonce is missing")
	}
	p.nonce = *nonce
	return &p, nil
}

// readParameter sets *value to a parameter; it stays nil if there is none. A parameter of another type is an error.
func readParameter[T int64 | string](params *httpsfv.Params, name string, value **T) error {
	given, there := params.Get(name)
	if !there {
		return nil
	}
	typed, ok := given.(T)
	if !ok {
		return fmt.Errorf("its parameter %s is of another type", name)
	}
	*value = &typed
	return nil
}

// agrees returns an error if the parameters alg, keyid and tag of a signature are not those of the Message. An absent alg agrees; an absent keyid or tag does not,
// if the Message has one.
func (m *Message) agrees(p *parameters) error {
	switch {
	case p.alg != nil && *p.alg != string(m.Key.algorithm):
		return fmt.Errorf("its parameter alg is not %s", m.Key.algorithm)
	case m.KeyID != "" && (p.keyid == nil || *p.keyid != m.KeyID):
		return errors.New("its parameter keyid names another key, or none")
	case m.Tag != "" && (p.tag == nil || *p.tag != m.Tag):
		return errors.New("its parameter tag names another application, or none")
	}
	return nil
}
