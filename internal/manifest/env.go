package manifest

import (
	"slices"
	"strings"
)

// The names that the sandbox or the dynamic loader, an interpreter or a well-known program would obey
// (§10.2). A * stands for anything.
var steeringNames = []string{
	"LD_*", "DYLD_*", "GCONV_PATH", "GLIBC_TUNABLES", "BASH_ENV", "ENV", "PROMPT_COMMAND", "IFS", "NODE_OPTIONS",
	"PYTHONSTARTUP", "PYTHONPATH*", "PERL5OPT", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "GIT_SSH*", "GIT_EXEC_PATH",
	"GIT_CONFIG_*", "SSH_AUTH_SOCK", "SSH_ASKPASS", "GPG_AGENT_INFO", "DBUS_*", "XDG_RUNTIME_DIR", "DISPLAY",
	"WAYLAND_DISPLAY", "DOCKER_HOST", "CONTAINER_HOST", "KUBECONFIG",
	// The runtime sets these itself.
	"PATH", "HOME", "TMPDIR", PreviewEnv,
}

// PreviewEnv holds, in the environment of a command that has a preview, the hash of the one that a person was shown and
// approved; it is empty when nobody was (§15.3).
const PreviewEnv = "HCP_PREVIEW"

// The names under which clouds and build services hand out credentials; inject may use them (§10.2).
var credentialNames = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONTAINER_*", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_*", "AZURE_FEDERATED_TOKEN_FILE",
	"AZURE_STORAGE_KEY", "AZURE_STORAGE_CONNECTION_STRING", "ARM_CLIENT_SECRET", "ARM_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
	"GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_API_KEY", "CLOUDSDK_AUTH_*", "DIGITALOCEAN_*TOKEN", "CLOUDFLARE_API_*",
	"HCLOUD_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "GL_TOKEN",
	"BITBUCKET_TOKEN", "CI_JOB_TOKEN", "CI_JOB_JWT*", "CI_REGISTRY_PASSWORD", "ACTIONS_*TOKEN", "CIRCLE_TOKEN", "BUILDKITE_AGENT_ACCESS_TOKEN",
	"DRONE_TOKEN", "JENKINS_API_TOKEN", "TRAVIS_TOKEN", "VAULT_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN", "PYPI_TOKEN", "TWINE_PASSWORD",
	"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "SLACK_TOKEN", "SLACK_BOT_TOKEN",
	"PGPASSWORD", "MYSQL_PWD", "SENTRY_AUTH_TOKEN", "TF_TOKEN_*",
}

// UnsafeEnvName says whether a pack may not set the name in its static environment (§10.2, wrap.env-name):
// it steers the loader, an interpreter or the sandbox, it is a place of ambient credentials, or it is no
// name at all.
func UnsafeEnvName(name string) bool {
	return UnsafeInjectName(name) || listed(credentialNames, name)
}

// UnsafeInjectName is the same for binding.inject, whose purpose are the credential names (§10.2).
func UnsafeInjectName(name string) bool {
	if !envName(name) {
		return true
	}
	if name == "GIT_CONFIG_NOSYSTEM" || name == "GIT_CONFIG_GLOBAL" {
		return false
	}
	// Programs obey http_proxy as they do HTTP_PROXY.
	return listed(steeringNames, name) || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
}

func envName(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func listed(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, suffix, open := strings.Cut(p, "*")
		if !open {
			return name == p
		}
		return len(name) >= len(prefix)+len(suffix) && strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix)
	})
}
