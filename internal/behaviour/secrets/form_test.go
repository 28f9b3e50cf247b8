package secrets_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// user is one way to use a journal.
type user struct {
	keys   string // one letter each; none: in clear
	hash   byte   // of the HashKey; 0: none
	accept bool
}

// open returns the journal as this user has it open, in a process of its own.
func (u user) open(t *testing.T, j persist.Journal) (persist.Journal, error) {
	t.Helper()
	below := &journaltest.OwnProcess{Journal: j}
	if u.keys == "" {
		return below, nil
	}
	c := seal.Config{AcceptPlain: u.accept}
	for _, id := range u.keys {
		c.Keys = append(c.Keys, seal.Key{ID: string(id), Secret: bytes.Repeat([]byte{byte(id)}, seal.SecretSize)})
	}
	if u.hash != 0 {
		c.HashKey = bytes.Repeat([]byte{u.hash}, seal.SecretSize)
	}
	s, err := seal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.Journal(t.Context(), below)
}

// TestFormOfJournal: what the first record of a journal decides, that it is sealed or not, and its HashKey, holds for all who
// come later, also where both have opened it empty: then the second to begin is refused, and writes and sends nothing. Before, a payment that stood
// under one form was not found under the other, and was made again.
func TestFormOfJournal(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		first, second user
		fits          bool
	}{
		"clear, then clear":             {user{}, user{}, true},
		"clear, then keys":              {user{}, user{keys: "a"}, false},
		"clear, then a HashKey":         {user{}, user{keys: "a", hash: 1}, false},
		"clear, then keys that accept":  {user{}, user{keys: "a", accept: true}, true},
		"keys, then clear":              {user{keys: "a"}, user{}, false},
		"keys, then the same":           {user{keys: "a"}, user{keys: "a"}, true},
		"keys, then rotated":            {user{keys: "a"}, user{keys: "ba"}, true},
		"keys, then a HashKey":          {user{keys: "a"}, user{keys: "a", hash: 1}, false},
		"keys, then keys that accept":   {user{keys: "a"}, user{keys: "a", accept: true}, true},
		"a HashKey, then the same":      {user{keys: "a", hash: 1}, user{keys: "ba", hash: 1}, true},
		"a HashKey, then another":       {user{keys: "a", hash: 1}, user{keys: "a", hash: 2}, false},
		"a HashKey, then none":          {user{keys: "a", hash: 1}, user{keys: "a"}, false},
		"a HashKey, then clear":         {user{keys: "a", hash: 1}, user{}, false},
		"a HashKey, then accepting":     {user{keys: "a", hash: 1}, user{keys: "a", accept: true}, false},
		"accepting keys, then clear":    {user{keys: "a", accept: true}, user{}, false},
		"accepting keys, then keys":     {user{keys: "a", accept: true}, user{keys: "a"}, true},
		"accepting, then a HashKey":     {user{keys: "a", accept: true}, user{keys: "a", hash: 1}, false},
		"accepting keys, then the same": {user{keys: "a", accept: true}, user{keys: "a", accept: true}, true},
	} {
		for _, empty := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/both open", false: "/opened later"}[empty], func(t *testing.T) {
				t.Parallel()
				enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
					j := shared.Open()
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					begin := func(open persist.Journal, err error) error {
						if err != nil {
							return err
						}
						c, _ := clienttest.New(t, w, clienttest.On(open, clienttest.OneAttempt))
						_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
						return err
					}
					var second persist.Journal
					var err error
					if empty {
						if second, err = r.second.open(t, j); err != nil {
							t.Fatal(err)
						}
					}
					if err := begin(r.first.open(t, j)); err != nil {
						t.Fatal(err)
					}
					if !empty {
						second, err = r.second.open(t, j)
					}
					before := len(journaltest.All(t, j))
					err = begin(second, err)
					if r.fits != (err == nil) || err != nil && (!errors.Is(err, persist.ErrSealed) || strings.Contains(err.Error(), "\n")) {
						t.Errorf("the second: %v; it fits: %t", err, r.fits)
					}
					if w.Count() != 1 || len(journaltest.All(t, j)) != before {
						t.Errorf("%d sends, %d records", w.Count(), len(journaltest.All(t, j)))
					}
				})
			})
		}
	}
}

// TestFormAtOnce: of users of other forms who begin an empty journal at once, exactly one form wins.
func TestFormAtOnce(t *testing.T) {
	t.Parallel()
	for range 10 {
		j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		errs := make([]error, 3)
		var wg sync.WaitGroup
		var clients []*oncehttp.Client
		for _, u := range []user{{}, {keys: "a"}, {keys: "a", hash: 1}} {
			open, err := u.open(t, j)
			if err != nil {
				t.Fatal(err)
			}
			c, _ := clienttest.New(t, w, clienttest.On(open))
			clients = append(clients, c)
		}
		for i, c := range clients {
			wg.Go(func() { _, errs[i] = c.DoKey(clienttest.Post(t, "{}"), "k") })
		}
		wg.Wait()
		refused := 0
		for _, err := range errs {
			if errors.Is(err, persist.ErrSealed) {
				refused++
			}
		}
		if refused != 2 || w.Count() != 1 || len(journaltest.All(t, j)) != 1 {
			t.Errorf("%d refused, %d sends, %d records: %v", refused, w.Count(), len(journaltest.All(t, j)), errs)
		}
	}
}

// TestOneProcessOneSealer: in one process the users of a journal have the same keys, in one order: what the process knows of the journal, such
// as that nothing of a request is unresolved, would not be true of what others have sealed.
func TestOneProcessOneSealer(t *testing.T) {
	t.Parallel()
	sealer := func(keys string) *seal.Sealer {
		var c seal.Config
		for _, id := range keys {
			c.Keys = append(c.Keys, seal.Key{ID: string(id), Secret: bytes.Repeat([]byte{byte(id)}, seal.SecretSize)})
		}
		s, err := seal.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
		j := shared.Open()
		sealed, err := sealer("ab").Journal(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(sealed))
		for keys, fits := range map[string]bool{"ab": true, "ba": false, "a": false, "b": false, "abc": false} {
			if _, err := sealer(keys).Journal(t.Context(), j); (err == nil) != fits || err != nil && !errors.Is(err, persist.ErrSealed) {
				t.Errorf("the keys %s beside ab: %v", keys, err)
			}
		}
		if _, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: clienttest.Origins()}); !errors.Is(err, persist.ErrSealed) || !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("a client without keys: %v", err)
		}
		clear := memory.New()
		clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(clear))
		if _, err := sealer("a").Journal(t.Context(), clear); !errors.Is(err, persist.ErrSealed) {
			t.Errorf("keys beside a client without: %v", err)
		}
	})
}

// TestOpenSealedEmpty: Open refuses a file that says that it is sealed, also where all its records are gone.
func TestOpenSealedEmpty(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testrun.Dir(t), "j.db")
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Fact(t.Context(), persist.FactSeal, nil, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := oncehttp.Open(path, oncehttp.Config{}); !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v; want ErrSealed and the path", err)
	}
}
