package main

import "github.com/oncehttp/oncehttp/clients/suites/beneath"

// suite is an SDK with the choice of its tests.
type suite struct {
	name   string
	module string      // with its version
	only   string      // a pattern for whole names of packages, relative to the module; "": all
	beside *beside     // the server for the tests; nil: they need none
	except []exception // expected failures
}

// exception is a test that fails with oncehttp for a documented reason.
type exception struct {
	mode string // the name of the Config; "": each
	test string // the top-level test, after its package relative to the module: "client.TestRetry"
	says string // the sentence of docs/clients.md
}

// modes returns the names of the Configs for the suite: the zero one, and the advised one
// unless that is zero, too.
func (s suite) modes() []string {
	advice := beneath.Advised(s.name)
	if advice == nil || advice.IsZero() {
		return []string{beneath.Zero}
	}
	return []string{beneath.Zero, s.name}
}

// The sentences of the page behind the exceptions.
const (
	inDoubt    = "An operation whose answer left a doubt is not sent again: a retry of the SDK's own gets ErrOutcomeUnknown."
	redirected = "A redirect that would have an operation sent again elsewhere is ErrRedirected, and no question to CheckRedirect."
	page200    = "An HTML page with a 2xx is no answer to an operation: something in front of the API may have given it."
	unknownKey = "With `profile.None()` a key is refused: for an API that takes keys at some endpoints, write a profile."
)

// suites returns the SDKs, with pinned versions. only is a pattern of the packages to test (without it all are), beside is a server that the tests need,
// and except lists the expected failures: the Config, the test, and the sentence of the documentation that says why.
func suites() []suite {
	return []suite{
		{name: "anthropic", module: "github.com/anthropics/anthropic-sdk-go@v1.84.0"},
		{name: "azcore", module: "github.com/Azure/azure-sdk-for-go/sdk/azcore@v1.24.0"},
		{name: "cloudflare", module: "github.com/cloudflare/cloudflare-go@v0.119.0"},
		{name: "connect", module: "connectrpc.com/connect@v1.21.1"},
		{name: "elastic", module: "github.com/elastic/elastic-transport-go/v8@v8.11.0"},
		{name: "failsafe", module: "github.com/failsafe-go/failsafe-go@v0.9.8"},
		{name: "gitlab", module: "gitlab.com/gitlab-org/api/client-go@v1.46.0"},
		{name: "go-github", module: "github.com/google/go-github/v75@v75.0.0", except: []exception{
			{"go-github", "github.TestMarkdownService_Markdown", page200},
		}},
		{name: "go-openai", module: "github.com/sashabaranov/go-openai@v1.43.0"},
		{name: "godo", module: "github.com/digitalocean/godo@v1.237.0", except: []exception{
			{"godo", "..TestActionGatewayRuntimeFailures", redirected},
			{"godo", "..TestHostedAgents_CreateWorkspace_IdempotencyKey", unknownKey},
		}},
		{name: "hcloud", module: "github.com/hetznercloud/hcloud-go/v2@v2.45.0", except: []exception{
			{"hcloud", "hcloud.TestClientDoPost", inDoubt}, // it repeats a 409
		}},
		{name: "heimdall", module: "github.com/gojek/heimdall/v7@v7.0.3"},
		{name: "linode", module: "github.com/linode/linodego@v1.69.1"},
		{name: "mailgun", module: "github.com/mailgun/mailgun-go/v4@v4.23.0"},
		{name: "minio", module: "github.com/minio/minio-go/v7@v7.4.1"},
		{name: "oauth2", module: "golang.org/x/oauth2@v0.38.0"},
		{name: "openai", module: "github.com/openai/openai-go/v3@v3.98.0"},
		{name: "otelhttp", module: "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp@v0.72.0"},
		{name: "paypal", module: "github.com/plutov/paypal/v4@v4.8.0"},
		{name: "requests", module: "github.com/carlmjohnson/requests@v0.23.5"},
		{name: "resty", module: "github.com/go-resty/resty/v2@v2.17.2"},
		{name: "slack", module: "github.com/slack-go/slack@v0.35.0"},
		{name: "sling", module: "github.com/dghubble/sling@v1.4.2"},
		{name: "smithy", module: "github.com/aws/smithy-go@v1.28.9"},
		{
			name: "stripe", module: "github.com/stripe/stripe-go/v85@v85.0.0",
			only: `\.|form|webhook|charge|customer|invoice|paymentintent|payout|refund|transfer`, // of about sixty of the same kind
			beside: &beside{
				module: "github.com/stripe/stripe-mock@v0.203.0", args: []string{"-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0"},
				says: "Listening for HTTPS at address: ", port: "STRIPE_MOCK_PORT",
			},
		},
		{name: "twilio", module: "github.com/twilio/twilio-go@v1.31.0", only: "client(/.*)?|twiml"}, // the root is two thousand files
	}
}
