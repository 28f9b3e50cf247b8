package beneath

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// Kind is the choice of an SDK's requests that are operations under the Config of its row.
type Kind string

// The kinds.
const (
	// Keyed: requests with a key.
	Keyed Kind = "keyed"
	// Written: each POST and PATCH, but for token requests, GraphQL queries and streams of events (oncehttp.Writes).
	Written Kind = "written"
	// InContext: the single request under a context of oncehttp.ContextWithKey.
	InContext Kind = "in context"
)

// Advice is a row of the table in docs/clients.md. A test compares the page with it.
type Advice struct {
	SDK     string                 // its name on the page
	Suite   string                 // its name in the program suites; empty: no suite runs with it
	Config  func() oncehttp.Config // returns a new Config
	Lines   string                 // the code for the SDK, after the Config
	Kind    Kind
	Below   string // for Written: the prefix of the paths of operations; empty: all
	Meaning string // the operations of Kind, for users of this SDK
	Retries string // the setting for the SDK's own retries
}

// unkeyed returns the Config for an API without keys. Each POST and PATCH is an operation: it is sent once, and held (for a person to decide) in case of doubt.
func unkeyed() oncehttp.Config {
	return oncehttp.Config{Profile: profile.None(), Operation: oncehttp.Writes}
}

// named returns the Config for an API without keys and an SDK with retries of its own. A request is an operation if its context names a key
// (oncehttp.ContextWithKey).
func named() oncehttp.Config { return oncehttp.Config{Profile: profile.None()} }

// zero returns the zero Config, for an SDK that sends a key with each operation.
func zero() oncehttp.Config { return oncehttp.Config{} }

// The usual texts.
const (
	byHeader   = "a call with the header `Idempotency-Key`"
	sentOnce   = "each POST and PATCH: it is sent once, and held where its answer leaves a doubt"
	noRepeats  = "it has none"
	offForKeys = "none for such a call"
)

// Table returns the rows of the table in docs/clients.md: for each SDK the advised way to put oncehttp under it. They are in the order of the page.
// Each call returns a new slice. A row has the SDK, its name among the program suites, its Config, the code for the SDK, the kind of the requests that
// are operations, the prefix of their paths (empty: all), what that means to a user, and the setting for the SDK's own retries.
func Table() []Advice {
	return []Advice{
		{"stripe-go", "stripe", stripe, "`stripe.BackendConfig{HTTPClient: client.StandardClient(), MaxNetworkRetries: stripe.Int64(0)}`",
			Keyed, "", "each POST: the SDK gives it a key. `params.SetIdempotencyKey` sets that of the business", "none"},
		{"openai-go (made by Stainless)", "openai", zero, "`option.WithHTTPClient(client.StandardClient())`, `option.WithMaxRetries(0)`",
			Keyed, "", "a call with `option.WithHeader(\"Idempotency-Key\", key)`", offForKeys},
		{"anthropic-sdk-go (made by Stainless)", "anthropic", zero, "`option.WithHTTPClient(client.StandardClient())`, `option.WithMaxRetries(0)`",
			Keyed, "", "a call with `option.WithHeader(\"Idempotency-Key\", key)`", offForKeys},
		{"paypal", "paypal", paypal, "`c.SetHTTPClient(client.StandardClient())`",
			Keyed, "", "an order that is created, authorized or captured; a `requestID` is its key", noRepeats},
		{"azcore", "azcore", azure, "`policy.ClientOptions{Transport: client.StandardClient()}`",
			Keyed, "", "a call with the header `Repeatability-Request-ID`", "`policy.RetryOptions{MaxRetries: -1}` for such a call"},
		{"slack", "slack", slack, "`slack.OptionHTTPClient(client.StandardClient())`",
			Written, "/api/chat.", "each call of a `chat.` method: it is sent once, and held where its answer leaves a doubt. Slack's reads are POSTs, too, and pass", "none for these, as it comes"},
		{"go-github", "go-github", unkeyed, "`github.NewClient(client.StandardClient())`", Written, "", sentOnce, noRepeats},
		{"client-go of GitLab", "gitlab", named, "`gitlab.WithHTTPClient(client.StandardClient())`",
			InContext, "", "a call with `gitlab.WithContext(oncehttp.ContextWithKey(ctx, key))`: it is sent once, and held where its answer leaves a doubt",
			"`gitlab.WithoutRetries()` where such calls are made"},
		{"godo", "godo", unkeyed, "`godo.NewClient(client.StandardClient())`", Written, "", sentOnce, "none, as it comes"},
		{"hcloud-go", "hcloud", unkeyed, "`hcloud.WithHTTPClient(client.StandardClient())`, `hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0})`",
			Written, "", sentOnce, "none"},
		{"linodego", "linode", unkeyed, "`linodego.NewClient(client.StandardClient())`", Written, "", sentOnce, "none: `SetRetryCount(0)`"},
		{"cloudflare-go", "cloudflare", named, "`cloudflare.HTTPClient(client.StandardClient())`",
			InContext, "", "a call with `oncehttp.ContextWithKey(ctx, key)`: it is sent once, and held where its answer leaves a doubt",
			"`cloudflare.UsingRetryPolicy(0, 0, 0)` where such calls are made"},
		{"twilio-go", "twilio", unkeyed, "`twilio.ClientParams{Client: &twilioclient.Client{HTTPClient: client.StandardClient()}}`", Written, "", sentOnce, noRepeats},
		{"mailgun-go", "mailgun", unkeyed, "`mg.SetClient(client.StandardClient())`", Written, "", sentOnce, noRepeats},
		{"oauth2", "oauth2", zero, "`context.WithValue(ctx, oauth2.HTTPClient, client.StandardClient())`",
			Keyed, "", "nothing: a token request takes no key", noRepeats},
		{"connect", "connect", zero, "`pingv1connect.NewPingServiceClient(client.StandardClient(), url)`",
			Keyed, "", "a call whose `Header()` has an `Idempotency-Key`: unary ones only", noRepeats},
		{"otelhttp", "otelhttp", zero, "`otelhttp.NewTransport(client.Transport())`",
			Keyed, "", "what it was without it: a span is one call, with all its sends", noRepeats},
		{"go-openai", "go-openai", zero, "`config.HTTPClient = client.StandardClient()`", Keyed, "", "nothing", noRepeats},
		{"elastic-transport-go", "elastic", zero, "`elastictransport.Config{Transport: client.Transport()}`", Keyed, "", "nothing", "as they come"},
		{"minio-go", "minio", zero, "`minio.Options{Transport: client.Transport()}`", Keyed, "", "nothing: an upload is a PUT", "as they come"},
		{"smithy-go (AWS)", "smithy", zero, "`config.WithHTTPClient(client.StandardClient())`", Keyed, "", "nothing: AWS takes its tokens in bodies, queries or headers of its own", "as they come"},
		{"resty", "resty", zero, "`resty.NewWithClient(client.StandardClient())`", Keyed, "", byHeader, "`SetRetryCount(0)`, as it comes"},
		{"sling", "sling", zero, "`sling.New().Client(client.StandardClient())`", Keyed, "", byHeader, noRepeats},
		{"requests", "requests", zero, "`requests.URL(url).Client(client.StandardClient())`", Keyed, "", byHeader, noRepeats},
		{"heimdall", "heimdall", zero, "`httpclient.WithHTTPClient(client.StandardClient())`", Keyed, "", byHeader, "`httpclient.WithRetryCount(0)`"},
		{"failsafe-go", "failsafe", zero, "`failsafehttp.NewRoundTripper(client.Transport(), policies...)`", Keyed, "", byHeader, "no retry policy for such a call"},
		{"any other whose API takes keys", "", zero, "its option for an `*http.Client`, or for a transport", Keyed, "", byHeader, "none for such a call; as it comes for the rest"},
		{"any other whose API takes none", "", unkeyed, "its option for an `*http.Client`, or for a transport", Written, "", sentOnce, "none"},
	}
}

// slack returns the Config for Slack: its chat methods are operations. Slack takes no keys, so each is sent once.
func slack() oncehttp.Config {
	chat := func(req *http.Request) bool { return oncehttp.Writes(req) && strings.Contains(req.URL.Path, "/chat.") }
	return oncehttp.Config{Profile: profile.None(), Operation: chat}
}

// stripe returns the configuration advised for clients of Stripe.
func stripe() oncehttp.Config { return oncehttp.Config{Profile: profile.StripeV1()} }

// paypal returns the configuration advised for clients of PayPal.
func paypal() oncehttp.Config {
	p, _ := profile.ByName("paypal-orders")
	return oncehttp.Config{Profile: p}
}

// azure returns the configuration advised for clients of Azure.
func azure() oncehttp.Config {
	p, _ := profile.ByName("azure-repeatability")
	return oncehttp.Config{Profile: p}
}

// IsZero reports whether the row advises the zero Config, so that one run of the SDK's tests is enough.
func (a *Advice) IsZero() bool { return reflect.DeepEqual(a.Config(), oncehttp.Config{}) }

// Advised returns a copy of the advice for the SDK whose tests have this name; nil if there is none.
func Advised(suite string) *Advice {
	for _, a := range Table() {
		if a.Suite == suite && suite != "" {
			return &a
		}
	}
	return nil
}
