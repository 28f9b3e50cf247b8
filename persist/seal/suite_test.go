package seal_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// testKey is a key with its own secret.
func testKey(id string) seal.Key {
	return seal.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), seal.SecretSize)}
}

// sealer makes a sealer, or fails the test.
func sealer(t testing.TB, c seal.Config) *seal.Sealer {
	t.Helper()
	s, err := seal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sealers are the ways to seal that have to keep the contract.
func sealers(t *testing.T) map[string]*seal.Sealer {
	return map[string]*seal.Sealer{
		"one key":    sealer(t, seal.Config{Keys: []seal.Key{testKey("a")}}),
		"three keys": sealer(t, seal.Config{Keys: []seal.Key{testKey("b"), {ID: "secret-of-b", Secret: testKey("b").Secret}, testKey("a")}}),
		"hashed":     sealer(t, seal.Config{Keys: []seal.Key{testKey("a")}, HashKey: bytes.Repeat([]byte("h"), 32)}),
		"plain, too": sealer(t, seal.Config{Keys: []seal.Key{testKey("a")}, AcceptPlain: true}),
	}
}

func TestSuiteMemory(t *testing.T) {
	t.Parallel()
	for name, s := range sealers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cases []string // all
			if name != "three keys" {
				cases = testrun.Some(persisttest.Names(), 4)
			}
			persisttest.Run(t, persisttest.Harness{
				Cases: cases,
				New: func(string) (func() (persist.Journal, error), error) {
					return func() (persist.Journal, error) { return s.Journal(context.Background(), memory.New()) }, nil
				},
			})
		})
	}
}

// TestSuiteBolt opens each file with its two keys in the other order than the last time.
func TestSuiteBolt(t *testing.T) {
	t.Parallel()
	a, b := testKey("a"), testKey("b")
	turns := []*seal.Sealer{sealer(t, seal.Config{Keys: []seal.Key{a, b}}), sealer(t, seal.Config{Keys: []seal.Key{b, a}})}
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
		New: func(string) (func() (persist.Journal, error), error) {
			dir, opened := testrun.Dir(t), 0 // the file itself has tests of its own
			return func() (persist.Journal, error) {
				opened++
				return openBolt(filepath.Join(dir, "journal.db"), turns[opened%2])
			}, nil
		},
	})
}

// openBolt opens a journal file that is sealed.
func openBolt(path string, s *seal.Sealer) (persist.Journal, error) {
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, err
	}
	j, err := s.Journal(context.Background(), file)
	if err != nil {
		_ = file.Close()
	}
	return j, err
}
