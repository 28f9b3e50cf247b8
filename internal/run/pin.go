package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// credentialPrefix says how a credential was hashed.
const credentialPrefix = "sha256:"

// regionBytesMax bounds Config.Region.
const regionBytesMax = 64

// CredentialHash returns the hash by which Config.Credential names a credential: "sha256:" and 64 hexadecimal digits. It protects secrets nobody
// can guess, such as API keys. For a password chosen by a person, give another name, and change it with the password.
func CredentialHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return credentialPrefix + hex.EncodeToString(sum[:])
}

// checkPin returns the error in Credential and Region. It never repeats a possible secret.
func checkPin(c *Config) error {
	digits, hashed := strings.CutPrefix(c.Credential, credentialPrefix)
	if sum, err := hex.DecodeString(digits); c.Credential != "" && (!hashed || err != nil || len(sum) != sha256.Size) {
		return errors.New("the Credential is no hash; want what CredentialHash makes of the credential, never the credential itself")
	}
	notVisible := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(c.Region) > regionBytesMax || strings.ContainsFunc(c.Region, notVisible) {
		return fmt.Errorf("the Region %q: want a name of at most %d visible characters", c.Region, regionBytesMax)
	}
	return nil
}
