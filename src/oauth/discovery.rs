//! What the authorization server says of itself (RFC 8414 §2, OpenID Connect Discovery
//! §3). One text for every place that it is served from.

use serde_json::{Value, json};

use super::machines::JWT_BEARER;
use super::{OFFLINE_ACCESS, Site};
use crate::config::{Client, ClientGrant};

/// The MCP extension of machines.
const CLIENT_CREDENTIALS_EXTENSION: &str = "io.modelcontextprotocol/oauth-client-credentials";
/// The MCP extension of ID-JAG.
const ENTERPRISE_EXTENSION: &str = "io.modelcontextprotocol/enterprise-managed-authorization";
/// The profile of ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant).
const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";

impl Site<'_> {
    /// The metadata document.
    pub fn metadata(&self) -> String {
        let registration = &self.settings.server.registration;
        let any = |grant| self.clients().any(|client: &Client| client.may(grant));
        let mut grants = vec!["authorization_code", "refresh_token"];
        let mut extensions = Vec::new();
        if any(ClientGrant::ClientCredentials) {
            grants.push("client_credentials");
            extensions.push(CLIENT_CREDENTIALS_EXTENSION);
        }
        let id_jag = any(ClientGrant::JwtBearer)
            && self
                .settings
                .providers
                .values()
                .any(|provider| provider.id_jag);
        if id_jag {
            grants.push(JWT_BEARER);
            extensions.push(ENTERPRISE_EXTENSION);
        }
        let methods = [
            "none",
            "client_secret_basic",
            "client_secret_post",
            "private_key_jwt",
        ];
        let scopes: Vec<&str> = self
            .settings
            .scopes
            .iter()
            .map(crate::ids::Scope::as_str)
            .chain([OFFLINE_ACCESS])
            .collect();
        let mut document = json!({
            "issuer": self.issuer,
            "authorization_endpoint": self.endpoint("/oauth/authorize"),
            "token_endpoint": self.endpoint("/oauth/token"),
            "jwks_uri": self.endpoint("/oauth/jwks"),
            "revocation_endpoint": self.endpoint("/oauth/revoke"),
            "introspection_endpoint": self.endpoint("/oauth/introspect"),
            "scopes_supported": scopes,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": grants,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256", "EdDSA"],
            "revocation_endpoint_auth_methods_supported": methods,
            "introspection_endpoint_auth_methods_supported": methods.get(1..).unwrap_or_default(),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": registration.metadata_documents,
            "prompt_values_supported": ["none", "login", "consent", "select_account"],
            "request_parameter_supported": false,
            "request_uri_parameter_supported": false,
        });
        if let Some(members) = document.as_object_mut() {
            let mut put = |name: &str, value: Value| {
                members.insert(name.to_owned(), value);
            };
            if registration.dynamic {
                put(
                    "registration_endpoint",
                    self.endpoint("/oauth/register").into(),
                );
            }
            if id_jag {
                put(
                    "authorization_grant_profiles_supported",
                    json!([ID_JAG_PROFILE]),
                );
            }
            if !extensions.is_empty() {
                put("mcp_extensions_supported", json!(extensions));
            }
        }
        document.to_string()
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        self.settings.clients.values().map(|client| &client.config)
    }
}
