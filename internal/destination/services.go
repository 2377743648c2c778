package destination

import (
	"net/url"
	"slices"
	"strings"
)

// sharedHosts take webhooks of many customers under one host name, and tell them
// apart by what follows it. Destinations there have nothing in common but the
// service, which limits its callers itself, so one project's channels must not
// use up each other's limit. A name that begins with a dot stands for all below it.
var sharedHosts = []string{
	// chat
	"hooks.slack.com", "discord.com", "discordapp.com", "chat.googleapis.com", ".webhook.office.com", ".zulipchat.com", "api.telegram.org",
	"webhooks.mattermost.com", "open.feishu.cn", "open.larksuite.com", "oapi.dingtalk.com", "qyapi.weixin.qq.com",
	"webexapis.com", "api.flock.com",
	// code and builds
	"api.github.com", "gitlab.com", "api.bitbucket.org", "circleci.com", "dev.azure.com", "app.travis-ci.com",
	// publishing and hosting
	"api.netlify.com", "api.vercel.com", "api.cloudflare.com", "api.render.com", "api.digitalocean.com", "api.heroku.com",
	// automation and alarms
	"hooks.zapier.com", ".make.com", "maker.ifttt.com", "events.pagerduty.com", "api.opsgenie.com",
	".logic.azure.com", ".api.powerplatform.com",
}

// sharedByCustomers says whether an origin is a service's that many customers share.
func sharedByCustomers(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return slices.ContainsFunc(sharedHosts, func(name string) bool {
		return host == name || strings.HasPrefix(name, ".") && strings.HasSuffix(host, name)
	})
}
