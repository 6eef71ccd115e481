// Sends a request body of Proctor's with the vendors' own SDKs for Vertex AI, to the base URL that it is told.
const { sdk, base, model, body } = JSON.parse(process.argv[2]);
const authClient = {
  projectId: "my-project",
  getRequestHeaders: async () => new Headers({ authorization: "Bearer ya29.canary" }),
};
if (sdk === "anthropic") {
  const { AnthropicVertex } = await import("@anthropic-ai/vertex-sdk");
  const options = { projectId: "my-project", region: "us-east5", baseURL: `${base}/v1`, authClient, maxRetries: 0 };
  const { anthropic_version, ...params } = body;
  await new AnthropicVertex(options).messages.create({ model, ...params });
} else {
  const { GoogleGenAI } = await import("@google/genai");
  const { contents, generationConfig, ...config } = body;
  const options = { vertexai: true, project: "my-project", location: "us-east5", googleAuthOptions: { authClient } };
  const client = new GoogleGenAI({ ...options, httpOptions: { baseUrl: base } });
  await client.models.generateContent({ model, contents, config: { ...config, ...generationConfig } });
}
