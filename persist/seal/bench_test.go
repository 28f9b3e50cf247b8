package seal_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// created answers every request at once.
type created struct{}

func (created) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	return &http.Response{
		StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: 11,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"id":"12"}`)),
	}, nil
}

// BenchmarkDo is an operation from Do to its response, with a journal file that is sealed or not; nothing is on a
// network.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64} {
		for _, name := range []string{"clear", "sealed"} {
			b.Run(name+"/"+strconv.Itoa(callers), func(b *testing.B) {
				var s *seal.Sealer
				if name == "sealed" {
					s = sealer(b, seal.Config{Keys: []seal.Key{testKey("a")}})
				}
				j := openMaybe(b, filepath.Join(b.TempDir(), "journal.db"), s)
				defer func() { _ = j.Close() }()
				c, err := oncehttp.New(oncehttp.Config{Journal: j, Transport: created{}})
				if err != nil {
					b.Fatal(err)
				}
				var begun atomic.Int64
				var callersDone sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range callers {
					callersDone.Go(func() {
						for n := begun.Add(1); n <= int64(b.N); n = begun.Add(1) {
							pay(b, c, oncehttp.Key("k"+strconv.FormatInt(n, 10)))
						}
					})
				}
				callersDone.Wait()
			})
		}
	}
}

// pay is one operation.
func pay(b *testing.B, c *oncehttp.Client, key oncehttp.Key) {
	req, err := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{"amount":100,"currency":"EUR"}`))
	if err != nil {
		b.Error(err)
		return
	}
	resp, err := c.DoKey(req, key)
	if err != nil {
		b.Error(err)
		return
	}
	_ = resp.Body.Close()
}

// BenchmarkSeal is what sealing itself costs: a record that is begun, and one that is read.
func BenchmarkSeal(b *testing.B) {
	s, rec := sealer(b, seal.Config{Keys: []seal.Key{testKey("a")}}), full("k")
	raw := sealed(b, s, rec)
	b.Run("seal", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Seal(rec); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unseal", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Unseal(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}
