package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// Algorithm is the name of a signature algorithm in the registry of RFC 9421 section 6.2.2.
type Algorithm string

// The algorithms (RFC 9421 section 3.3).
const (
	HMACSHA256      Algorithm = "hmac-sha256"       // a shared secret
	Ed25519         Algorithm = "ed25519"           // RFC 8032
	ECDSAP256SHA256 Algorithm = "ecdsa-p256-sha256" // r and s, 32 bytes each
	RSAPSSSHA512    Algorithm = "rsa-pss-sha512"    // salt of 64 bytes
	RSAPKCS1SHA256  Algorithm = "rsa-v1_5-sha256"   // RSASSA-PKCS1-v1_5
)

// Key signs, verifies, or does both. It is safe for concurrent use and may be copied. It prints as its algorithm. The zero
// value does neither, and every function here refuses it.
type Key struct {
	algorithm Algorithm
	// Functions hide the secret: fmt prints the fields of a struct if it cannot call its methods.
	sign   func(text []byte) ([]byte, error)  // nil: the key only verifies
	verify func(text, signature []byte) error // errWrong for a bad signature; nil in the zero Key
}

// Algorithm returns the key's algorithm; "" for the zero Key.
func (k Key) Algorithm() Algorithm { return k.algorithm }

// String returns the key's algorithm, such as "sign.Key(ed25519)".
func (k Key) String() string { return fmt.Sprintf("sign.Key(%s)", string(k.algorithm)) }

// GoString is [Key.String].
func (k Key) GoString() string { return k.String() }

// errWrong is the error of a signature that is not the key's for the text.
var errWrong = errors.New("it does not match")

// HMAC returns a Key with a copy of the shared secret. It signs and verifies. An empty secret gives the zero Key.
func HMAC(secret []byte) Key {
	if len(secret) == 0 {
		return Key{}
	}
	own := bytes.Clone(secret)
	return HMACFunc(func() ([]byte, error) { return own, nil })
}

// HMACFunc returns a Key that calls secret for each signature, so that the secret can be replaced while a program runs. It
// signs and verifies. secret must be safe for concurrent use. Its error ends the attempt, or the check, and errors.Is
// finds it; an empty secret is an error, too. A nil secret gives the zero Key.
func HMACFunc(secret func() ([]byte, error)) Key {
	if secret == nil {
		return Key{}
	}
	sum := func(text []byte) ([]byte, error) {
		key, err := secret()
		if err != nil {
			return nil, fmt.Errorf("the secret cannot be had: %w", err)
		}
		if len(key) == 0 {
			return nil, errors.New("the secret is empty")
		}
		h := hmac.New(sha256.New, key)
		h.Write(text)
		return h.Sum(nil), nil
	}
	return Key{algorithm: HMACSHA256, sign: sum, verify: func(text, signature []byte) error {
		want, err := sum(text)
		if err == nil && !hmac.Equal(want, signature) {
			err = errWrong
		}
		return err
	}}
}

// PrivateKey returns a Key for a private key, or for a device with one. It signs and verifies. signer must be safe for
// concurrent use. A nil signer, and an algorithm that is unknown or does not fit the kind of key, are errors.
func PrivateKey(algorithm Algorithm, signer crypto.Signer) (Key, error) {
	if signer == nil {
		return Key{}, errors.New("sign: no private key")
	}
	key, err := PublicKey(algorithm, signer.Public())
	if err != nil {
		return Key{}, err
	}
	key.sign = func(text []byte) ([]byte, error) {
		digest, options := digestFor(algorithm, text)
		signature, err := signer.Sign(rand.Reader, digest, options)
		if err == nil && algorithm == ECDSAP256SHA256 {
			signature, err = fixedFromDER(signature) // Go signs in ASN.1
		}
		if err != nil {
			return nil, fmt.Errorf("the private key cannot sign: %w", err)
		}
		return signature, nil
	}
	return key, nil
}

// PublicKey returns a Key for a public key: *[rsa.PublicKey], *[ecdsa.PublicKey] or [ed25519.PublicKey]. It only verifies.
// An algorithm that is unknown or does not fit the kind of key is an error.
func PublicKey(algorithm Algorithm, public crypto.PublicKey) (Key, error) {
	verify := verifierFor(algorithm, public)
	if verify == nil {
		return Key{}, fmt.Errorf("sign: no key for %q: a key of type %T cannot be used for it", string(algorithm), public)
	}
	return Key{algorithm: algorithm, verify: func(text, signature []byte) error {
		if !verify(text, signature) {
			return errWrong
		}
		return nil
	}}, nil
}

// verifierFor returns the function that verifies a signature by this key; nil if the key does not fit the algorithm.
func verifierFor(algorithm Algorithm, public crypto.PublicKey) func(text, signature []byte) bool {
	switch key := public.(type) {
	case ed25519.PublicKey:
		if algorithm == Ed25519 && len(key) == ed25519.PublicKeySize {
			return func(text, signature []byte) bool { return ed25519.Verify(key, text, signature) }
		}
	case *ecdsa.PublicKey:
		if algorithm == ECDSAP256SHA256 && key != nil && key.Curve == elliptic.P256() {
			return func(text, signature []byte) bool { return verifyFixed(key, text, signature) }
		}
	case *rsa.PublicKey:
		if key != nil && (algorithm == RSAPSSSHA512 || algorithm == RSAPKCS1SHA256) {
			return func(text, signature []byte) bool { return verifyRSA(key, algorithm, text, signature) }
		}
	}
	return nil
}

// verifyRSA reports whether a signature is valid. algorithm is one of the two of RSA.
func verifyRSA(key *rsa.PublicKey, algorithm Algorithm, text, signature []byte) bool {
	digest, options := digestFor(algorithm, text)
	if pss, ok := options.(*rsa.PSSOptions); ok {
		return rsa.VerifyPSS(key, pss.Hash, digest, signature, pss) == nil
	}
	return rsa.VerifyPKCS1v15(key, options.HashFunc(), digest, signature) == nil
}

// digestFor returns the arguments for a [crypto.Signer] that signs a text: its digest and the options. Ed25519 signs the text itself. The default case is
// ECDSA and RSA PKCS #1, with SHA-256.
func digestFor(algorithm Algorithm, text []byte) ([]byte, crypto.SignerOpts) {
	switch algorithm {
	case Ed25519: // takes the text itself
		return text, crypto.Hash(0)
	case RSAPSSSHA512:
		sum := sha512.Sum512(text)
		return sum[:], &rsa.PSSOptions{SaltLength: sha512.Size, Hash: crypto.SHA512}
	default:
		sum := sha256.Sum256(text)
		return sum[:], crypto.SHA256
	}
}

// pointBytes is the length of r and of s of P-256.
const pointBytes = 32

// fixedFromDER converts a signature of P-256 from ASN.1, the form of Go, to the form of HTTP signatures: r and s of 32 bytes each (RFC 9421 section
// 3.3.4).
func fixedFromDER(der []byte) ([]byte, error) {
	var pair struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &pair)
	if err != nil || len(rest) > 0 || !fits(pair.R) || !fits(pair.S) {
		return nil, errors.New("its signature is not one of P-256 in ASN.1")
	}
	fixed := make([]byte, 2*pointBytes)
	pair.R.FillBytes(fixed[:pointBytes])
	pair.S.FillBytes(fixed[pointBytes:])
	return fixed, nil
}

// fits reports whether n can be r or s of P-256. n is not nil.
func fits(n *big.Int) bool { return n.Sign() > 0 && n.BitLen() <= 8*pointBytes }

// verifyFixed reports whether a signature of P-256 is valid, with r and s of 32 bytes each. One of another length is not.
func verifyFixed(key *ecdsa.PublicKey, text, signature []byte) bool {
	if len(signature) != 2*pointBytes {
		return false
	}
	sum := sha256.Sum256(text)
	r, s := new(big.Int).SetBytes(signature[:pointBytes]), new(big.Int).SetBytes(signature[pointBytes:])
	return ecdsa.Verify(key, sum[:], r, s)
}
