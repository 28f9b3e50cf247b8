package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// HashKeyID is the id of Config.HashKey's line in a file of keys.
const HashKeyID = "hash-keys"

// fileMax bounds a file of keys.
const fileMax = 1 << 20

// ReadFile reads keys from a file, one "id:secret" a line, the current one first. The secret is 32 bytes in base64.
// Blank lines and lines starting with '#' are skipped. The line "hash-keys:secret", anywhere, is Config.HashKey.
//
//	printf '2026-07:%s\n' "$(head -c 32 /dev/urandom | base64)" > seal.keys && chmod 600 seal.keys
//
// Errors name the file and the line, and no secret. A file is refused if others than its owner may read or write it,
// but not on Windows.
func ReadFile(name string) (Config, error) {
	text, err := readPrivate(name)
	if err != nil {
		var inner *fs.PathError
		if errors.As(err, &inner) {
			err = inner.Err // without the path, which is added below
		}
		return Config{}, fmt.Errorf("key file %s: %w", name, err)
	}
	c, err := parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("key file %s: %w", name, err)
	}
	return c, nil
}

// readPrivate reads a file. It refuses one that others than its owner may read or write, and a very long one. On Windows the mode says nothing of others; what
// is no regular file, such as a pipe, has no such mode, either. It checks the opened file, since the name could be changed in between.
func readPrivate(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", errors.New("is a directory")
	case runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others may read it or write to it (mode %04o): chmod 600 %s", info.Mode().Perm(), name)
	}
	text, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(text) > fileMax {
		err = fmt.Errorf("more than %d bytes", fileMax)
	}
	return string(text), err
}

// parse reads a file of keys: a line for each, with its id, a colon and its secret in base64. Empty lines and those with '#' first are passed over. The line
// with HashKeyID has the key for hashing; it may be there once. The first of the other keys is that for new records.
func parse(text string) (c Config, err error) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, coded, found := strings.Cut(line, ":")
		secret, err := base64.StdEncoding.DecodeString(coded)
		k := Key{ID: id, Secret: secret}
		switch {
		case !found || err != nil:
			err = fmt.Errorf("want id:secret, the secret in base64")
		default:
			err = k.valid()
		}
		if err == nil && id == HashKeyID && c.HashKey != nil {
			err = fmt.Errorf("a second %s", HashKeyID)
		}
		if err != nil {
			return Config{}, fmt.Errorf("line %d: %w", i+1, err)
		}
		if id == HashKeyID {
			c.HashKey = secret
			continue
		}
		c.Keys = append(c.Keys, k)
	}
	if len(c.Keys) == 0 {
		return Config{}, errors.New("holds no key")
	}
	return c, nil
}
