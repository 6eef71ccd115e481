//! The file format of an agent file (`kind: Agent`).
//!
//! Its main type is [`AgentFile`].

use proctor_record::problem::WithSpan;
use serde_json::{Value, json};

use super::eval_file::ApiVersion;
use crate::builtin_agent::BuiltinAgent;
use crate::decode::{
    Context, Decode, Definitions, LooseText, RequiredKey, Table, decode_word, record, words,
};
use crate::document::Node;

words! {
    /// The value of `kind` in an agent file.
    pub enum AgentKindWord {
        "Agent" => Agent,
    }
}

record! {
    /// An agent: a built-in agent, a program that speaks ACP, or any command.
    pub struct AgentFile any_of ["builtin", "acp", "commands"] {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Agent`.
        "kind" => kind: RequiredKey<AgentKindWord>,
        /// The version of the format. It has no effect in this file.
        "apiVersion" => api_version: Option<ApiVersion>,
        /// The name and version of the agent.
        "metadata" => metadata: RequiredKey<AgentMetadata>,
        /// A built-in agent.
        "builtin" => builtin: Option<WithSpan<BuiltinFile>>,
        /// A program that speaks the Agent Client Protocol. It takes precedence over `builtin`.
        "acp" => acp: Option<AcpFile>,
        /// Any program, started with templates of its command line.
        "commands" => commands: Option<WithSpan<CommandsFile>>,
        /// The folder and tool with which the agent loads skills.
        "skills" => skills: Option<SkillMountFile>,
        /// Whether the agent reaches its model through Proctor's proxy, which measures token usage. Only Proctor supports this key.
        "modelTap" => model_tap: Option<bool>,
        /// Additional environment variables of an `acp` or `commands` agent. Proctor expands `{env.NAME}`, `{trial.dir}`,
        /// `{trial.id}`, `{random.id}` and `{random.port}`. Only Proctor knows this key.
        "env" => env: Table<WithSpan<LooseText>>,
        /// When an `acp` or `commands` agent connects to its servers. Only Proctor supports this key.
        "connects" => connects: Option<WithSpan<ConnectsWord>>,
    }
}

words! {
    /// When an agent connects to its servers.
    pub enum ConnectsWord {
        /// The agent connects when it needs a server. Proctor also grades a trial in which it connects to none.
        "onUse" => OnUse,
    }
}

record! {
    /// The name and version of an agent.
    pub struct AgentMetadata {
        /// The agent's name.
        "name" => name: RequiredKey<WithSpan<LooseText>>,
        /// The agent's version.
        "version" => version: Option<LooseText>,
        /// A description of the agent.
        "description" => description: Option<LooseText>,
        /// Annotations that Proctor stores unchanged.
        "annotations" => annotations: Option<Node>,
    }
}

impl Decode for BuiltinAgent {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        decode_word(node, cx, &Self::ALL.map(|agent| (agent.name(), agent)))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": Self::ALL.map(Self::name)})
    }
}

record! {
    /// A built-in agent.
    pub struct BuiltinFile {
        /// The name of the built-in agent.
        "type" => kind: BuiltinAgent,
        /// The model, as `provider:model-id`.
        "model" => model: Option<WithSpan<String>>,
        /// The base URL of the model's API.
        "baseUrl" => base_url: Option<WithSpan<String>>,
        /// The environment variable that holds the API key.
        "apiKey" => api_key: Option<String>,
    }
}

record! {
    /// A program that speaks the Agent Client Protocol on its stdin and stdout.
    pub struct AcpFile {
        /// The program to start.
        "cmd" => cmd: String,
        /// The arguments of the program. Proctor expands `{trial.dir}`, `{trial.id}`, `{random.id}` and `{random.port}`.
        "args" => args: Vec<WithSpan<LooseText>>,
    }
}

record! {
    /// Templates of a program's command line.
    pub struct CommandsFile {
        /// The command that runs the agent. Fields: `{{ .Prompt }}`, `{{ .McpServerFileArgs }}`, `{{ .AllowedToolArgs }}`,
        /// `{{ .DangerouslySkipPermissions }}`.
        "runPrompt" => run_prompt: WithSpan<String>,
        /// The arguments for each server. Fields: `{{ .File }}`, `{{ .URL }}`.
        "argTemplateMcpServer" => mcp_server: Option<WithSpan<LooseText>>,
        /// The arguments for each allowed tool. Fields: `{{ .ServerName }}`, `{{ .ToolName }}`.
        "argTemplateAllowedTools" => allowed_tools: Option<WithSpan<LooseText>>,
        /// The separator between allowed tools, a space by default.
        "allowedToolsJoinSeparator" => separator: Option<LooseText>,
        /// The value of `{{ .DangerouslySkipPermissions }}` in `runPrompt`, `false` by default.
        "dangerouslySkipPermissions" => skip_permissions: Option<bool>,
        /// Whether the agent runs with its own, empty home folder.
        "useVirtualHome" => virtual_home: Option<bool>,
        /// A command that prints the agent's version.
        "getVersion" => version: Option<String>,
    }
}

record! {
    /// The folder and tool with which the agent loads skills.
    pub struct SkillMountFile {
        /// The folder of the skills, inside the agent's working folder.
        "mountPath" => mount_path: Option<String>,
        /// The agent's tool that loads a skill.
        "toolName" => tool_name: Option<String>,
    }
}
